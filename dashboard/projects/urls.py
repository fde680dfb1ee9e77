from dashboard.administration.urls import catalogue
from dashboard.projects.views import members, overview, projects
from dashboard.shell.routes import path

_KIND = {"catalogue": projects.PROJECTS}

urlpatterns = [
    *catalogue(projects.PROJECTS, projects.projects, projects.project_settings, editing_at="settings/"),
    path("projects/<name:id>/", overview.project, _KIND, name="project"),
    path("projects/<name:id>/members/", members.project_member, name="project-member"),
]
