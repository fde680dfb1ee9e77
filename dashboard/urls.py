"""The URLs of all pages of the dashboard."""

from typing import Any

from django.urls import URLPattern, path, register_converter

from dashboard.accounts.views import account, email_address, joining, logins, people
from dashboard.administration.views import administration
from dashboard.administration.views.edited_kinds import ENVIRONMENTS, KNOWLEDGE, PROJECTS, TIERS, EditedKind
from dashboard.alerts.views import alerts, silences
from dashboard.announcements import views as announcements
from dashboard.audit import views as audit_log
from dashboard.clusters.views import clusters, launch_cluster
from dashboard.components.views import components
from dashboard.configuration import views as configuration
from dashboard.demonstration import views as demonstration
from dashboard.environments import views as revisions
from dashboard.executions.views import (
    executions,
    keeping,
    launch,
    launch_check,
    launch_objects,
    stopping,
    writing_to_owners,
)
from dashboard.files.views import changing_files, files, remotes, uploading
from dashboard.home import views as home
from dashboard.jobs.views import job_changes, jobs, ran_with, results, run_metrics, schedules
from dashboard.logs.views import knowledge, verbose_logs
from dashboard.nodes.views import infrastructure, node_marks, node_tasks, overview, pool_limits, use_history
from dashboard.notifications.views import notification_channels, notifications
from dashboard.palette import views as palette
from dashboard.platformhealth.views import api_checks, platform_health
from dashboard.projects import views as projects
from dashboard.queue.views import queue, queue_several, queue_takeover
from dashboard.secrets import views as secrets
from dashboard.servicelevels import views as service_levels
from dashboard.sharing.views import opening, sharing, sharing_ports
from dashboard.shell.ids import IdConverter, NameConverter
from dashboard.shell.views import health, help, icon, preferences, saved_views, script_texts
from dashboard.starts import views as startup
from dashboard.support.views import support
from dashboard.tiers.views import rush, tier_checking
from dashboard.usage.views import budgets, usage
from dashboard.workspaces.views import workspace_restart, workspaces

register_converter(IdConverter, "id")
register_converter(NameConverter, "name")


def _catalogue(
    catalogue: EditedKind,
    listing: Any = administration.catalogue_list,
    editing: Any = administration.catalogue_edit,
    archiving: Any = administration.catalogue_archive,
) -> list[URLPattern]:
    """Return the URLs of one kind of object that admins edit; others than admins get something from `listing` and `editing` alone."""
    root, name, extra = catalogue.name, catalogue.singular, {"catalogue": catalogue}
    return [
        path(f"{root}/", listing, extra, name=root),
        path(f"{root}/new/", administration.catalogue_edit, extra, name=f"{name}-new"),
        path(f"{root}/<name:id>/", editing, extra, name=name),
        path(f"{root}/<name:id>/archive/", archiving, extra, name=f"{name}-archive"),
        path(
            f"{root}/<name:id>/take-back/<int:entry_id>/",
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
    path("account/email/<int:id>/<slug:token>/", email_address.email_link, name="email-link"),
    path("account/email/confirm/", email_address.email_confirm, name="email-confirm"),
    path("account/email/send-again/", email_address.email_send_again, name="email-send-again"),
    path("account/email/cancel/", email_address.email_cancel, name="email-cancel"),
    path("account/password/", account.password, name="password"),
    path("account/sessions/end/", account.session_end, name="session-end"),
    path("account/sessions/end-others/", account.sessions_end_others, name="sessions-end-others"),
    path("account/notifications/", notifications.notification_choices, name="notification-choices"),
    path("account/notifications/test/", notification_channels.notification_test, name="notification-test"),
    path("account/webhook/", notification_channels.webhook, name="webhook"),
    path("account/webhook/remove/", notification_channels.webhook_remove, name="webhook-remove"),
    path("notifications/", notifications.notification_list, name="notifications"),
    path("notifications/read/", notifications.notifications_read, name="notifications-read"),
    path("table-view/", preferences.choose_table_view, name="table-view"),
    path("first-steps/hide/", preferences.choose_first_steps, name="first-steps-hide"),
    path("views/", saved_views.view_save, name="view-save"),
    path("views/<int:id>/", saved_views.view_open, name="view-open"),
    path("views/<int:id>/default/", saved_views.view_default, name="view-default"),
    path("views/<int:id>/delete/", saved_views.view_delete, name="view-delete"),
    path("theme/", preferences.choose_theme, name="theme"),
    path("overview/", overview.overview, name="overview"),
    path("overview/support/", support.platform_support, name="platform-support"),
    path("infrastructure/", infrastructure.infrastructure, name="infrastructure"),
    path("infrastructure/history/", infrastructure.pool_history, name="pool-history"),
    path("infrastructure/use/", use_history.pool_use_values, name="pool-use"),
    path("startup/", startup.startup, name="startup"),
    path("startup/days/", startup.startup_days, name="startup-days"),
    path("service-levels/", service_levels.service_levels, name="service-levels"),
    path("nodes/<str:name>/", infrastructure.node, name="node"),
    path("nodes/<str:name>/use/", use_history.node_use, name="node-use"),
    path("nodes/<str:name>/cordon/", node_tasks.node_cordon, name="node-cordon"),
    path("nodes/<str:name>/drain/", node_tasks.node_drain, name="node-drain"),
    path("nodes/<str:name>/mark/", node_marks.node_mark, name="node-mark"),
    path("pools/<path:name>/limits/", pool_limits.pool_limits, name="pool-limits"),
    path("pods/<str:namespace>/<str:name>/", infrastructure.pod, name="pod"),
    path("pods/<str:namespace>/<str:name>/use/", use_history.pod_use, name="pod-use"),
    path("pods/<str:namespace>/<str:name>/log/", infrastructure.pod_log, name="pod-log"),
    path("help/", help.help_page, name="help"),
    path("palette/", palette.palette, name="palette"),
    path("launch/", launch.launch, name="launch"),
    path("launch/estimate/", launch_cluster.launch_estimate, name="launch-estimate"),
    path("launch/check/", launch_check.launch_check, name="launch-check"),
    path("launch/objects/", launch_objects.launch_objects, name="launch-objects"),
    path("launch/choices/", launch_cluster.launch_choices, name="launch-choices"),
    path("executions/", executions.executions, name="executions"),
    path("executions/message/", writing_to_owners.executions_message, name="executions-message"),
    path("executions/stop/", stopping.executions_stop, name="executions-stop"),
    path("queue/", queue.queue, name="queue"),
    path("verbose-logs/", verbose_logs.verbose_logs, name="verbose-logs"),
    path("queue/take-over/", queue_takeover.queue_takeover, name="queue-takeover"),
    path("queue/hold/", queue_several.queue_several, {"do": "hold"}, name="queue-hold"),
    path("queue/release/", queue_several.queue_several, {"do": "release"}, name="queue-release"),
    path("queue/cancel/", queue_several.queue_several, {"do": "cancel"}, name="queue-cancel"),
    path("queue/<id:id>/", queue.queue_order, name="queue-order"),
    path("executions/<id:id>/", executions.execution, name="execution"),
    path("executions/<id:id>/log/", executions.execution_log, name="execution-log"),
    path("executions/<id:id>/lifecycle/", executions.execution_lifecycle, name="execution-lifecycle"),
    path("executions/<id:id>/share/", sharing.execution_share, name="execution-share"),
    path("executions/<id:id>/stop/", stopping.execution_stop, name="execution-stop"),
    path("executions/<id:id>/keep/", keeping.execution_keep, name="execution-keep"),
    path("executions/<id:id>/samples/", clusters.execution_samples, name="execution-samples"),
    path("executions/<id:id>/results/", results.execution_results, name="execution-results"),
    path("executions/<id:id>/support/", support.execution_support, name="execution-support"),
    path("executions/<id:id>/record/", ran_with.execution_record, name="execution-record"),
    path("executions/<id:id>/use/", executions.execution_use, name="execution-use"),
    path("executions/<id:id>/metrics/", run_metrics.execution_metrics, name="execution-metrics"),
    path("executions/<id:id>/resize/", clusters.execution_resize, name="execution-resize"),
    path("executions/<id:id>/restart-head/", clusters.execution_restart_head, name="execution-restart-head"),
    path("executions/<id:id>/open/", opening.open_execution, name="execution-open"),
    path("executions/<id:id>/opening/", opening.continue_opening, name="execution-opening"),
    path("usage/", usage.own_usage, name="usage"),
    path("usage/everybody/", usage.usage_of_everybody, name="usage-of-everybody"),
    path("usage/people/<int:id>/", usage.person_usage, name="person-usage"),
    path("workspaces/", workspaces.workspaces, name="workspaces"),
    path("workspaces/<id:id>/", workspaces.workspace, name="workspace"),
    path("workspaces/<id:id>/resume/", workspaces.workspace_resume, name="workspace-resume"),
    path("workspaces/<id:id>/restart/", workspace_restart.workspace_restart, name="workspace-restart"),
    path(
        "workspaces/<id:id>/restart/cancel/",
        workspace_restart.workspace_restart_cancel,
        name="workspace-restart-cancel",
    ),
    path("workspaces/<id:id>/share/", sharing_ports.workspace_share, name="workspace-share"),
    path("workspaces/<id:id>/unshare/", sharing_ports.workspace_unshare, name="workspace-unshare"),
    path("workspaces/<id:id>/rename/", workspaces.workspace_rename, name="workspace-rename"),
    path("workspaces/<id:id>/delete/", workspaces.workspace_delete, name="workspace-delete"),
    path("jobs/", jobs.jobs, name="jobs"),
    path("jobs/stop/", stopping.jobs_stop, name="jobs-stop"),
    path("jobs/<id:id>/", jobs.job, name="job"),
    path("jobs/<id:id>/run/", job_changes.job_run, name="job-run"),
    path("jobs/<id:id>/sweep/", job_changes.job_sweep, name="job-sweep"),
    path("jobs/<id:id>/edit/", job_changes.job_edit, name="job-edit"),
    path("jobs/<id:id>/delete/", job_changes.job_delete, name="job-delete"),
    path("jobs/<id:id>/stop/", job_changes.job_stop, name="job-stop"),
    path("jobs/<id:id>/again/<int:number>/", job_changes.job_again, name="job-again"),
    path("jobs/<id:id>/schedules/new/", schedules.schedule_new, name="schedule-new"),
    path("jobs/<id:id>/schedules/check/", schedules.schedule_check, name="schedule-check"),
    path("jobs/<id:id>/schedules/<int:number>/", schedules.schedule_edit, name="schedule-edit"),
    path("jobs/<id:id>/schedules/<int:number>/pause/", schedules.schedule_pause, name="schedule-pause"),
    path("jobs/<id:id>/schedules/<int:number>/delete/", schedules.schedule_delete, name="schedule-delete"),
    path("jobs/<id:id>/metrics/", run_metrics.job_metrics, name="job-metrics"),
    path("jobs/<id:id>/compare/", jobs.job_compare, name="job-compare"),
    *_catalogue(TIERS),
    path("tiers/new/check/", tier_checking.tier_check, name="tier-new-check"),
    path("tiers/<name:id>/check/", tier_checking.tier_check, name="tier-check"),
    *_catalogue(ENVIRONMENTS),
    path("environments/<name:id>/revisions/", revisions.revision_list, name="environment-revisions"),
    path("environments/<name:id>/revisions/new/", revisions.revision_new, name="environment-revision-new"),
    path("environments/<name:id>/revisions/<int:number>/", revisions.revision, name="environment-revision"),
    path(
        "environments/<name:id>/revisions/<int:number>/deprecate/",
        revisions.revision_deprecate,
        name="environment-revision-deprecate",
    ),
    *_catalogue(PROJECTS, projects.projects, projects.project),
    *_catalogue(KNOWLEDGE, knowledge.knowledge_base, knowledge.knowledge_entry, knowledge.knowledge_archive),
    path("knowledge/<name:id>/found/", knowledge.knowledge_found, name="knowledge-found"),
    path("projects/<name:id>/budget/", budgets.project_budget, name="project-budget"),
    path("projects/<name:id>/members/", projects.project_member, name="project-member"),
    path("projects/<name:id>/files/", files.project_files, name="project-files"),
    path("projects/<name:id>/files/history/", files.project_history, name="project-history"),
    path("projects/<name:id>/files/download/", files.project_file, name="project-file"),
    path("projects/<name:id>/files/upload/", uploading.project_upload, name="project-upload"),
    path("projects/<name:id>/files/delete/", changing_files.project_file_delete, name="project-file-delete"),
    path("projects/<name:id>/files/move/", changing_files.project_file_move, name="project-file-move"),
    path("projects/<name:id>/files/push-again/", files.project_push_again, name="project-push-again"),
    path("projects/<name:id>/remote/", remotes.project_remote, name="project-remote"),
    path("projects/<name:id>/remote/test/", remotes.project_remote_test, name="project-remote-test"),
    path("projects/<name:id>/remote/confirm/", remotes.project_remote_confirm, name="project-remote-confirm"),
    path("projects/<name:id>/remote/remove/", remotes.project_remote_remove, name="project-remote-remove"),
    path("projects/<name:id>/secrets/", secrets.project_secrets, name="project-secrets"),
    path(
        "projects/<name:id>/secrets/<int:secret>/delete/", secrets.project_secret_delete, name="project-secret-delete"
    ),
    path("secrets/", secrets.own_secrets, name="secrets"),
    path("secrets/<int:id>/delete/", secrets.own_secret_delete, name="secret-delete"),
    path("people/", people.people, name="people"),
    path("people/invite/", people.invite, name="person-invite"),
    path("people/<int:id>/", people.person, name="person"),
    path("people/<int:id>/role/", people.person_role, name="person-role"),
    path("people/<int:id>/link/", people.person_link, name="person-link"),
    path("people/<int:id>/deactivate/", people.person_deactivate, name="person-deactivate"),
    path("people/<int:id>/activate/", people.person_activate, name="person-activate"),
    path("people/<int:id>/sessions/end/", people.person_sessions_end, name="person-sessions-end"),
    path("announcements/", announcements.announcements, name="announcements"),
    path("announcements/new/", announcements.announcement_edit, name="announcement-new"),
    path("announcements/hide/", announcements.announcement_hide, name="announcement-hide"),
    path("announcements/<id:id>/", announcements.announcement_edit, name="announcement"),
    path("announcements/<id:id>/end/", announcements.announcement_end, name="announcement-end"),
    path("rush/", rush.rush, name="rush"),
    path("rush/<id:id>/remove/", rush.rush_remove, name="rush-remove"),
    path("alerts/", alerts.alerts, name="alerts"),
    path("alerts/received/", alerts.alerts_received, name="alerts-received"),
    path("alerts/<int:id>/silence/", silences.alert_silence, name="alert-silence"),
    path("alerts/silences/<int:id>/end/", silences.silence_end, name="silence-end"),
    path("alerts/steps/<slug:id>/", alerts.runbook, name="runbook"),
    path("platform-health/api-checks/", api_checks.api_checks, name="api-checks"),
    path("platform-health/api-checks/run/", api_checks.api_checks_run, name="api-checks-run"),
    path("platform-health/", platform_health.platform_health, name="platform-health"),
    path("audit-log/", audit_log.audit_log, name="audit-log"),
    path("audit-log/export/", audit_log.audit_export, name="audit-export"),
    path("logins/", logins.logins, name="logins"),
    path("logins/unlock/", logins.unlock, name="login-unlock"),
    path("configuration/", configuration.configuration, name="configuration"),
    path("components/", components.components, name="components"),
    path("demonstration/", demonstration.demonstration, name="demonstration"),
    path("demonstration/size/", demonstration.demonstration_size, name="demonstration-size"),
    path("demonstration/failure/", demonstration.demonstration_failure, name="demonstration-failure"),
    path("favicon.ico", icon.favicon, name="favicon"),
    path("script-texts/<slug:language>/<slug:version>.js", script_texts.script_texts, name="script-texts"),
    path("healthz", health.alive, name="healthz"),
    path("readyz", health.ready, name="readyz"),
    path("freshz", health.fresh, name="freshz"),
]
