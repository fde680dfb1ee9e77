"""Serve people's workspaces, apps and clusters' pages, each on an origin of its own."""

from grid.checks import OURS
from grid.management.commands import web


class Command(web.Command):
    """Any number may run; each asks the database who may reach what, and watches the executions' pods itself."""

    help = __doc__
    requires_system_checks = (OURS,)
    application = "grid.proxy_asgi:application"
    port = 8001
    message_bytes = 64 * 2**20  # of one websocket message: a notebook with pictures is saved in one
