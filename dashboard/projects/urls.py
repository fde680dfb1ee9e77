"""The URLs of this room's pages."""

from dashboard.administration.urls import catalogue
from dashboard.projects import views as projects
from dashboard.projects.edited import PROJECTS
from dashboard.shell.routes import path

urlpatterns = [
    *catalogue(PROJECTS, projects.projects, projects.project),
    path("projects/<name:id>/members/", projects.project_member, name="project-member"),
]
