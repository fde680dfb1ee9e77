"""The URLs of this room's pages."""

from django.urls import URLPattern

from dashboard.accounts.views import account, email_address, joining, logins, people
from dashboard.shell.routes import path

urlpatterns: list[URLPattern] = [
    path("login/", account.login, name="login"),
    path("join/<str:uidb64>/<str:token>/", joining.join, name="join"),
    path("logout/", account.logout, name="logout"),
    path("account/", account.account, name="account"),
    path("account/email/<int:id>/<slug:token>/", email_address.email_link, name="email-link"),
    path("account/email/confirm/", email_address.email_confirm, name="email-confirm"),
    path("account/email/send-again/", email_address.email_send_again, name="email-send-again"),
    path("account/email/cancel/", email_address.email_cancel, name="email-cancel"),
    path("account/password/", account.password, name="password"),
    path("account/sessions/end/", account.session_end, name="session-end"),
    path("account/sessions/end-others/", account.sessions_end_others, name="sessions-end-others"),
    path("people/", people.people, name="people"),
    path("people/invite/", people.invite, name="person-invite"),
    path("people/<int:id>/", people.person, name="person"),
    path("people/<int:id>/role/", people.person_role, name="person-role"),
    path("people/<int:id>/link/", people.person_link, name="person-link"),
    path("people/<int:id>/deactivate/", people.person_deactivate, name="person-deactivate"),
    path("people/<int:id>/activate/", people.person_activate, name="person-activate"),
    path("people/<int:id>/sessions/end/", people.person_sessions_end, name="person-sessions-end"),
    path("logins/", logins.logins, name="logins"),
    path("logins/unlock/", logins.unlock, name="login-unlock"),
]
