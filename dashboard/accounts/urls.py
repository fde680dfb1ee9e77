from dashboard.accounts.views import account, people
from dashboard.shell.routes import path

urlpatterns = [
    path("login/", account.login, name="login"),
    path("join/<str:uidb64>/<str:token>/", account.join, name="join"),
    path("logout/", account.logout, name="logout"),
    path("account/", account.account, name="account"),
    path("account/email/<int:id>/<slug:token>/", account.email_link, name="email-link"),
    path("account/email/confirm/", account.email_confirm, name="email-confirm"),
    path("account/email/send-again/", account.email_send_again, name="email-send-again"),
    path("account/email/cancel/", account.email_cancel, name="email-cancel"),
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
    path("logins/", people.logins, name="logins"),
    path("logins/unlock/", people.unlock, name="login-unlock"),
]
