from dashboard.secrets import views as secrets
from dashboard.shell.routes import path

urlpatterns = [
    path("projects/<name:id>/secrets/", secrets.project_secrets, name="project-secrets"),
    path(
        "projects/<name:id>/secrets/<int:secret>/delete/", secrets.project_secret_delete, name="project-secret-delete"
    ),
    path("secrets/", secrets.own_secrets, name="secrets"),
    path("secrets/<int:id>/delete/", secrets.own_secret_delete, name="secret-delete"),
]
