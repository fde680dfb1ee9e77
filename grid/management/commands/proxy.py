"""Serve people's workspaces, apps and clusters' pages, each on an origin of its own."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from grid.management.commands.web import listen, refuse_to_expose, serve
from grid.management.varfiles import refuse_unusable_database

_LARGEST_MESSAGE = 64 * 2**20  # bytes of one websocket message: a notebook with pictures is saved in one


class Command(BaseCommand):
    """Any number may run; each asks the database who may reach what, and watches the executions' pods itself."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
        parser.add_argument("--port", type=int, default=8001, help="port to listen on (default: %(default)s)")

    def handle(self, *args: Any, **options: Any) -> None:
        host: str = options["host"]
        refuse_to_expose(host)
        refuse_unusable_database()
        serve("grid.proxy_asgi:application", listen(host, options["port"]), message_bytes=_LARGEST_MESSAGE)
