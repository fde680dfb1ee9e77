from dashboard.administration.urls import catalogue
from dashboard.projects import views as projects
from dashboard.shell.routes import path

urlpatterns = [
    *catalogue(projects.PROJECTS, projects.projects, projects.project),
    path("projects/<name:id>/members/", projects.project_member, name="project-member"),
]
