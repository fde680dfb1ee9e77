"""The URLs of this room's pages."""

from dashboard.nodes.views import infrastructure, node_tasks, use_history
from dashboard.shell.routes import path

urlpatterns = [
    path("overview/", infrastructure.overview, name="overview"),
    path("infrastructure/", infrastructure.infrastructure, name="infrastructure"),
    path("infrastructure/history/", infrastructure.pool_history, name="pool-history"),
    path("infrastructure/use/", use_history.pool_use_values, name="pool-use"),
    path("executions/<id:id>/use/", use_history.execution_use, name="execution-use"),
    path("nodes/<str:name>/", infrastructure.node, name="node"),
    path("nodes/<str:name>/use/", use_history.node_use, name="node-use"),
    path("nodes/<str:name>/cordon/", node_tasks.node_cordon, name="node-cordon"),
    path("nodes/<str:name>/drain/", node_tasks.node_drain, name="node-drain"),
    path("nodes/<str:name>/mark/", node_tasks.node_mark, name="node-mark"),
    path("pools/<path:name>/limits/", node_tasks.pool_limits, name="pool-limits"),
    path("pods/<str:namespace>/<str:name>/", infrastructure.pod, name="pod"),
    path("pods/<str:namespace>/<str:name>/use/", use_history.pod_use, name="pod-use"),
    path("pods/<str:namespace>/<str:name>/log/", infrastructure.pod_log, name="pod-log"),
]
