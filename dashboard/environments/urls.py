from dashboard.administration.urls import catalogue
from dashboard.environments import views as revisions
from dashboard.shell.routes import path

urlpatterns = [
    *catalogue(revisions.ENVIRONMENTS),
    path("environments/<name:id>/revisions/", revisions.revision_list, name="environment-revisions"),
    path("environments/<name:id>/revisions/new/", revisions.revision_new, name="environment-revision-new"),
    path("environments/<name:id>/revisions/<int:number>/", revisions.revision, name="environment-revision"),
    path(
        "environments/<name:id>/revisions/<int:number>/deprecate/",
        revisions.revision_deprecate,
        name="environment-revision-deprecate",
    ),
]
