"""The URLs of this room's pages."""

from django.urls import URLPattern

from dashboard.queue.views import queue
from dashboard.shell.routes import path

urlpatterns: list[URLPattern] = [
    path("queue/", queue.queue, name="queue"),
    path("queue/take-over/", queue.queue_takeover, name="queue-takeover"),
    path("queue/hold/", queue.queue_several, {"do": "hold"}, name="queue-hold"),
    path("queue/release/", queue.queue_several, {"do": "release"}, name="queue-release"),
    path("queue/cancel/", queue.queue_several, {"do": "cancel"}, name="queue-cancel"),
    path("queue/<id:id>/", queue.queue_order, name="queue-order"),
]
