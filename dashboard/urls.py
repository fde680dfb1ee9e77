"""The URLs of all pages of the dashboard: each room has its own. No two rooms have URLs that match the same address."""

from django.urls import URLPattern

from dashboard import composition as composition
from dashboard.accounts import urls as accounts
from dashboard.alerts import urls as alerts
from dashboard.announcements import urls as announcements
from dashboard.audit import urls as audit
from dashboard.clusters import urls as clusters
from dashboard.components import urls as components
from dashboard.configuration import urls as configuration
from dashboard.demonstration import urls as demonstration
from dashboard.environments import urls as environments
from dashboard.executions import urls as executions
from dashboard.files import urls as files
from dashboard.home import urls as home
from dashboard.jobs import urls as jobs
from dashboard.logs import urls as logs
from dashboard.nodes import urls as nodes
from dashboard.notifications import urls as notifications
from dashboard.palette import urls as palette
from dashboard.platformhealth import urls as platformhealth
from dashboard.projects import urls as projects
from dashboard.queue import urls as queue
from dashboard.secrets import urls as secrets
from dashboard.servicelevels import urls as servicelevels
from dashboard.sharing import urls as sharing
from dashboard.shell import urls as shell
from dashboard.starts import urls as starts
from dashboard.support import urls as support
from dashboard.tiers import urls as tiers
from dashboard.usage import urls as usage
from dashboard.workspaces import urls as workspaces

_ROOMS = (
    home,
    accounts,
    notifications,
    shell,
    nodes,
    support,
    starts,
    servicelevels,
    palette,
    executions,
    clusters,
    queue,
    logs,
    sharing,
    jobs,
    usage,
    workspaces,
    tiers,
    environments,
    projects,
    files,
    secrets,
    announcements,
    alerts,
    platformhealth,
    audit,
    configuration,
    components,
    demonstration,
)
urlpatterns: list[URLPattern] = [pattern for room in _ROOMS for pattern in room.urlpatterns]
