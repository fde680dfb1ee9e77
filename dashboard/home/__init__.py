"""The first page after login: one's own executions and workspaces, slots, latest launches, projects, and the first steps.

It owns nothing that is stored; it composes what other rooms read. Others may import the words of the first steps.
"""

PUBLIC = ("page", "urls", "viewmodels.first_steps")
