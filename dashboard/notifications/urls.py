"""The URLs of this room's pages."""

from django.urls import URLPattern

from dashboard.notifications.views import notification_channels, notifications
from dashboard.shell.routes import path

urlpatterns: list[URLPattern] = [
    path("account/notifications/", notifications.notification_choices, name="notification-choices"),
    path("account/notifications/test/", notification_channels.notification_test, name="notification-test"),
    path("account/webhook/", notification_channels.webhook, name="webhook"),
    path("account/webhook/remove/", notification_channels.webhook_remove, name="webhook-remove"),
    path("notifications/", notifications.notification_list, name="notifications"),
    path("notifications/read/", notifications.notifications_read, name="notifications-read"),
]
