"""What upper rooms give to lower ones, which know none of them: saved views of tables, and what changes beside every page.

The web process imports it with its URLs; the proxy and the controller have no pages.
"""

from dashboard.alerts.page import alert_updates
from dashboard.announcements.page import announcement_updates
from dashboard.executions.viewmodels import executions_view
from dashboard.nodes.viewmodels import infrastructure
from dashboard.notifications.pages.notified import bell_updates
from dashboard.shell.pages.live import BESIDE_PAGES
from dashboard.shell.viewmodels.saved_views import VIEWED_TABLES

VIEWED_TABLES |= executions_view.VIEWED_TABLES | infrastructure.VIEWED_TABLES
BESIDE_PAGES += [bell_updates, announcement_updates, alert_updates]
