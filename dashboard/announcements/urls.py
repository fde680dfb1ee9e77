from dashboard.announcements import views as announcements
from dashboard.shell.routes import path

urlpatterns = [
    path("announcements/", announcements.announcements, name="announcements"),
    path("announcements/new/", announcements.announcement_edit, name="announcement-new"),
    path("announcements/hide/", announcements.announcement_hide, name="announcement-hide"),
    path("announcements/<id:id>/", announcements.announcement_edit, name="announcement"),
    path("announcements/<id:id>/end/", announcements.announcement_end, name="announcement-end"),
]
