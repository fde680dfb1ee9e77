"""Composition root of the web process: HTTP by Django, websockets by the dashboard's live pages.

A websocket is accepted from the dashboard's own origin only, port included: the workspaces' origin, where user code answers,
differs from it by its port alone, and cookies do not know ports.
"""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "grid.settings")
django_application = get_asgi_application()

# Imported after Django is set up: they import models.
from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import OriginValidator  # noqa: E402
from django.conf import settings  # noqa: E402

from dashboard.routing import websocket_urlpatterns  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": django_application,
        "websocket": OriginValidator(
            AuthMiddlewareStack(URLRouter(websocket_urlpatterns)), [settings.DASHBOARD_ORIGIN]
        ),
    }
)
