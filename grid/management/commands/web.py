"""Serve the dashboard and, on an origin of its own, the workspaces."""

import errno
import ipaddress
import socket
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from grid.edge.server import make_server
from grid.management.varfiles import refuse_damaged_database

_LARGEST_MESSAGE = 64 * 2**20  # bytes of one websocket message: a notebook with pictures is saved in one


class Command(BaseCommand):
    """One process, two listening sockets: which origin a request is for, its Host header tells."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
        parser.add_argument("--port", type=int, default=8000, help="port of the dashboard")
        parser.add_argument("--workspace-port", type=int, default=8001, help="port of the workspaces' origin")

    def handle(self, *args: Any, **options: Any) -> None:
        host: str = options["host"]
        if settings.DEMO and not _is_loopback(host):
            raise CommandError(
                f"Demo accounts have printed passwords, so demo mode serves loopback addresses only, not {host}. "
                "Use --host 127.0.0.1, or run without GRID_DEMO and with accounts of your own."
            )
        if settings.DEBUG and not _is_loopback(host):
            raise CommandError(
                f"Debugging shows source and settings to whoever asks, so it serves loopback addresses only, not {host}. "
                "Use --host 127.0.0.1, or run without GRID_DEBUG and with a GRID_SECRET_KEY of your own."
            )
        refuse_damaged_database()
        sockets = [listen(host, port) for port in (options["port"], options["workspace_port"])]
        server = make_server(
            "grid.asgi:application", message_bytes=_LARGEST_MESSAGE, trusted_proxies=settings.TRUSTED_PROXIES
        )
        server.run(sockets=sockets)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, or a CommandError that says in one sentence why not."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048, reuse_port=False)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise CommandError(f"Port {port} on {host} is in use by another program: choose another port.") from error
        raise CommandError(f"Cannot listen on {host} port {port}: {error.strerror}.") from error


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
