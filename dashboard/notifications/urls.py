from dashboard.notifications import views
from dashboard.shell.routes import path

urlpatterns = [
    path("account/notifications/", views.notification_choices, name="notification-choices"),
    path("account/notifications/test/", views.notification_test, name="notification-test"),
    path("account/webhook/", views.webhook, name="webhook"),
    path("account/webhook/remove/", views.webhook_remove, name="webhook-remove"),
    path("notifications/", views.notification_list, name="notifications"),
    path("notifications/read/", views.notifications_read, name="notifications-read"),
]
