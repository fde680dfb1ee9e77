"""How a cluster is shown on the pages that all executions have."""

from typing import Any

from dashboard.clusters.forms.cluster import ClusterForm
from dashboard.clusters.page import cluster_objects, cluster_presence, cluster_record, cluster_summary, samples_table
from dashboard.clusters.viewmodels.samples import rescale_words
from dashboard.clusters.viewmodels.workers import LEGEND
from dashboard.clusters.views.clusters import cluster_context
from dashboard.executions.kinds import ExecutionKindFace
from dashboard.executions.viewmodels.execution import ExecutionRecord, Person
from grid.models.environment import Kind


def _context(record: ExecutionRecord, viewer: Person) -> dict[str, Any]:
    return {
        "kind_notice": "troubles",
        "kind_section": "clusters/fragments/execution_section.html",
        "phases": LEGEND,
        "sample_rows": samples_table(record),
    }


CLUSTER = ExecutionKindFace(
    Kind.CLUSTER,
    read=cluster_record,
    present=cluster_presence,
    context=_context,
    objects=cluster_objects,
    summary=cluster_summary,
    section=ClusterForm,
    launch_context=cluster_context,
    event_words={"SuccessfulRescale": rescale_words},
)
