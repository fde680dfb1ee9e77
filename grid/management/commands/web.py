"""Serve the dashboard."""

import errno
import socket
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from grid.core.origins import is_loopback
from grid.edge.server import make_server
from grid.management.varfiles import refuse_unusable_database


class Command(BaseCommand):
    help = __doc__
    application = "grid.asgi:application"
    port = 8000
    message_bytes = 4096  # of one websocket message: live pages read none

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
        parser.add_argument("--port", type=int, default=self.port, help="port to listen on (default: %(default)s)")
        parser.add_argument("--share-port", action="store_true", help="let others of these listen on the same port")

    def handle(self, *args: Any, **options: Any) -> None:
        host: str = options["host"]
        refuse_to_expose(host)
        refuse_unusable_database()
        listener = listen(host, options["port"], is_shared=options["share_port"])
        proxies = settings.TRUSTED_PROXIES
        server = make_server(self.application, message_bytes=self.message_bytes, trusted_proxies=proxies)
        server.run(sockets=[listener])


def refuse_to_expose(host: str) -> None:
    """Raise CommandError for an address that others can reach, in the modes that are for this machine alone."""
    if settings.DEMO and not is_loopback(host):
        raise CommandError(
            f"Demo accounts have printed passwords, so demo mode serves loopback addresses only, not {host}. "
            "Use --host 127.0.0.1, or run without GRID_DEMO and with accounts of your own."
        )
    if settings.DEBUG and not is_loopback(host):
        raise CommandError(
            f"Debugging shows source and settings to whoever asks, so it serves loopback addresses only, not {host}. "
            "Use --host 127.0.0.1, or run without GRID_DEBUG and with a GRID_SECRET_KEY of your own."
        )


def listen(host: str, port: int, *, is_shared: bool = False) -> socket.socket:
    """Return a listening socket. Of shared ones on the same port, the kernel gives each new connection to any that listens: such a one does
    not before the server begins. Raise CommandError with one sentence when that is not possible."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        if not is_shared:
            return socket.create_server((host, port), family=family, backlog=2048)
        listener = socket.socket(family)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((host, port))
        return listener
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise CommandError(f"Port {port} on {host} is in use by another program: choose another port.") from error
        raise CommandError(f"Cannot listen on {host} port {port}: {error.strerror}.") from error
