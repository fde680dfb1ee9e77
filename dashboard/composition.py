"""What upper rooms give to lower ones, which know none of them: the faces of execution kinds, saved views, what changes beside each page.

The web process imports it with its URLs; the proxy and the controller have no pages.
"""

from dashboard.alerts.page import alert_updates
from dashboard.announcements.records import announcement_updates
from dashboard.clusters.kind import CLUSTER
from dashboard.executions.kinds import PAGE_PARTS, register
from dashboard.executions.viewmodels import executions_view
from dashboard.jobs.kind import JOB
from dashboard.nodes.viewmodels import infrastructure
from dashboard.nodes.views.use_history import execution_use_section
from dashboard.notifications.page import bell_updates
from dashboard.shell.pages.live import BESIDE_PAGES
from dashboard.shell.viewmodels.saved_views import VIEWED_TABLES
from dashboard.workspaces.kind import APP, WORKSPACE

VIEWED_TABLES |= executions_view.VIEWED_TABLES | infrastructure.VIEWED_TABLES
PAGE_PARTS.append(execution_use_section)
for face in (WORKSPACE, JOB, APP, CLUSTER):
    register(face)
BESIDE_PAGES += [bell_updates, announcement_updates, alert_updates]
