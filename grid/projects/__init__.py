"""Projects as the controller sees them: who may no longer launch in one, and what happens to the executions of people who leave it.

It owns the grace time after which such executions are stopped; others import `departures`, to do so and to say so. The tables of
projects and memberships are in `grid.models`; a project's files, secrets and budget have rooms of their own.
"""

PUBLIC = ("departures",)
