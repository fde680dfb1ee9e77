"""The URLs of all pages of the dashboard."""

from typing import Any

from django.urls import URLPattern, path, register_converter

from dashboard.ids import IdConverter
from dashboard.views import (
    account,
    administration,
    clusters,
    components,
    configuration,
    demonstration,
    executions,
    health,
    home,
    icon,
    infrastructure,
    joining,
    launch,
    launch_cluster,
    logins,
    opening,
    overview,
    palette,
    people,
    preferences,
    projects,
    stopping,
    workspaces,
)
from dashboard.views.administration import ENVIRONMENTS, PROJECTS, TIERS, EditedKind

register_converter(IdConverter, "id")


def _catalogue(
    catalogue: EditedKind, listing: Any = administration.catalogue_list, editing: Any = administration.catalogue_edit
) -> list[URLPattern]:
    """Return the URLs of one kind of object that admins edit; others than admins get something from `listing` and `editing` alone."""
    root, name, extra = catalogue.name, catalogue.singular, {"catalogue": catalogue}
    return [
        path(f"{root}/", listing, extra, name=root),
        path(f"{root}/new/", administration.catalogue_edit, extra, name=f"{name}-new"),
        path(f"{root}/<str:id>/", editing, extra, name=name),
        path(f"{root}/<str:id>/archive/", administration.catalogue_archive, extra, name=f"{name}-archive"),
        path(
            f"{root}/<str:id>/take-back/<int:entry_id>/",
            administration.catalogue_revert,
            extra,
            name=f"{name}-revert",
        ),
    ]


urlpatterns: list[URLPattern] = [
    path("", home.home, name="home"),
    path("login/", account.login, name="login"),
    path("join/<str:uidb64>/<str:token>/", joining.join, name="join"),
    path("logout/", account.logout, name="logout"),
    path("account/", account.account, name="account"),
    path("account/password/", account.password, name="password"),
    path("account/sessions/end/", account.session_end, name="session-end"),
    path("account/sessions/end-others/", account.sessions_end_others, name="sessions-end-others"),
    path("table-view/", preferences.choose_table_view, name="table-view"),
    path("theme/", preferences.choose_theme, name="theme"),
    path("overview/", overview.overview, name="overview"),
    path("infrastructure/", infrastructure.infrastructure, name="infrastructure"),
    path("nodes/<str:name>/", infrastructure.node, name="node"),
    path("pods/<str:namespace>/<str:name>/", infrastructure.pod, name="pod"),
    path("pods/<str:namespace>/<str:name>/log/", infrastructure.pod_log, name="pod-log"),
    path("palette/", palette.palette, name="palette"),
    path("launch/", launch.launch, name="launch"),
    path("launch/estimate/", launch_cluster.launch_estimate, name="launch-estimate"),
    path("launch/choices/", launch_cluster.launch_choices, name="launch-choices"),
    path("executions/", executions.executions, name="executions"),
    path("executions/stop/", stopping.executions_stop, name="executions-stop"),
    path("executions/<id:id>/", executions.execution, name="execution"),
    path("executions/<id:id>/log/", executions.execution_log, name="execution-log"),
    path("executions/<id:id>/lifecycle/", executions.execution_lifecycle, name="execution-lifecycle"),
    path("executions/<id:id>/stop/", stopping.execution_stop, name="execution-stop"),
    path("executions/<id:id>/samples/", clusters.execution_samples, name="execution-samples"),
    path("executions/<id:id>/resize/", clusters.execution_resize, name="execution-resize"),
    path("executions/<id:id>/restart-head/", clusters.execution_restart_head, name="execution-restart-head"),
    path("executions/<id:id>/open/", opening.open_execution, name="execution-open"),
    path("executions/<id:id>/opening/", opening.continue_opening, name="execution-opening"),
    path("workspaces/", workspaces.workspaces, name="workspaces"),
    path("workspaces/<id:id>/", workspaces.workspace, name="workspace"),
    path("workspaces/<id:id>/resume/", workspaces.workspace_resume, name="workspace-resume"),
    path("workspaces/<id:id>/rename/", workspaces.workspace_rename, name="workspace-rename"),
    path("workspaces/<id:id>/delete/", workspaces.workspace_delete, name="workspace-delete"),
    *_catalogue(TIERS),
    *_catalogue(ENVIRONMENTS),
    *_catalogue(PROJECTS, projects.projects, projects.project),
    path("projects/<str:id>/members/", projects.project_member, name="project-member"),
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
    path("configuration/", configuration.configuration, name="configuration"),
    path("components/", components.components, name="components"),
    path("demonstration/", demonstration.demonstration, name="demonstration"),
    path("demonstration/size/", demonstration.demonstration_size, name="demonstration-size"),
    path("demonstration/failure/", demonstration.demonstration_failure, name="demonstration-failure"),
    path("favicon.ico", icon.favicon, name="favicon"),
    path("healthz", health.alive, name="healthz"),
    path("readyz", health.ready, name="readyz"),
    path("freshz", health.fresh, name="freshz"),
]
