"""Environments: their revisions, how images of revisions are built, and what is known against the packages in them.

It owns the current revision of an environment, the build Jobs with what their builder says, and the daily check of the package index.
Others import `revisions`; builds and checks are run by the controller.
"""

PUBLIC = ("packagechecks", "packageindex", "revisionbuilds", "revisions")
