"""What happened to a cluster, as people read it: what its pods go through together is one line, and nothing is told twice."""

from dataclasses import replace
from typing import Any

from dashboard.executions.viewmodels.kind_record import KindRecord
from dashboard.executions.viewmodels.timeline import timeline
from dashboard.shell.fragments import render_fragment
from grid.kube.objects import Event, RawObject
from tests.clusters.clustering import minutes, waiting_worker
from tests.clusters.test_cluster_viewmodel import ABOVE, NOW, RECORD, rescale
from tests.executions.executing import entered
from tests.support import builders
from tests.support.builders import decode


def test_same_event_of_many_workers_is_a_single_line() -> None:
    pods = [waiting_worker("c", name) for name in "abc"]
    events = [
        decode(builders.event(f"e{place}", about=pod, reason="TriggeredScaleUp", message="1->3", at=minutes(1)), Event)
        for place, pod in enumerate(pods)
    ]
    other = decode(
        builders.event("late", about=pods[0], reason="TriggeredScaleUp", message="1->3", at=minutes(9)), Event
    )
    record = replace(RECORD, lifecycle=(entered("queued"), rescale(0.5, 3, ABOVE)))
    html = [render_fragment(line, now=NOW) for line in timeline(record, [*events, other], [], assigned_node="")]
    assert sum("New node requested" in line for line in html) == 2
    assert sum("3 pods" in line for line in html) == 1
    assert sum("To 3 workers: CPU use is above its target." in line for line in html) == 1
    alone = timeline(replace(record, kind_record=KindRecord()), events, [], assigned_node="")
    assert sum("New node requested" in render_fragment(line, now=NOW) for line in alone) == 3


def happened(name: str, about: RawObject, reason: str, message: str, **fields: Any) -> Event:
    return decode(builders.event(name, about=about, reason=reason, message=message, at=minutes(1), **fields), Event)


def test_common_steps_of_pods_are_one_line_despite_names() -> None:
    pods = [waiting_worker("c", name) for name in "abc"]
    events = [
        happened(f"{reason}{place}", pod, reason, f"{reason} {pod['metadata']['name']}", kind=kind)
        for place, pod in enumerate(pods)
        for reason, kind in (("Scheduled", "Normal"), ("Pulled", "Normal"), ("FailedMount", "Warning"))
    ]
    html = [render_fragment(line, now=NOW) for line in timeline(RECORD, events, [], assigned_node="")]
    for headline in ("Scheduled on a node", "Image pulled"):
        (line,) = [line for line in html if headline in line]
        assert "3 pods" in line
        assert pods[0]["metadata"]["name"] not in line
    assert sum("The files could not be attached" in line for line in html) == 3, "each trouble has its own words"


def test_repeated_event_of_a_pod_keeps_its_words() -> None:
    pod = waiting_worker("c", "a")
    events = [
        happened(f"e{place}", pod, "Unhealthy", f"{kind} probe failed")
        for place, kind in enumerate(("Readiness", "Liveness"))
    ]
    html = "".join(render_fragment(line, now=NOW) for line in timeline(RECORD, events, [], assigned_node=""))
    assert ("Readiness probe failed" in html, "Liveness probe failed" in html, "1 pod" in html) == (True, True, False)


def test_a_metric_that_cannot_be_read_is_told_once() -> None:
    scaler = {"kind": "HorizontalPodAutoscaler", "metadata": {"name": "cluster-worker", "namespace": "compute-grid"}}
    unread = happened("unread", scaler, "FailedGetResourceMetric", "no metrics returned", kind="Warning")
    echo = happened("echo", scaler, "FailedComputeMetricsReplicas", "invalid metrics: no metrics", kind="Warning")
    html = "".join(render_fragment(line, now=NOW) for line in timeline(RECORD, [unread, echo], [], assigned_node=""))
    assert ("could not be measured" in html, "could not be computed" in html) == (True, False)
    html = "".join(render_fragment(line, now=NOW) for line in timeline(RECORD, [echo], [], assigned_node=""))
    assert "could not be computed" in html


def test_own_observations_are_open_and_kubernetes_words_folded() -> None:
    away = replace(entered("queued"), to_state="", reason="controller_away", message="Until 09:05.", event_uid="ours-1")
    killed = replace(away, reason="Killing", message="Stopping container run", event_uid="theirs-1")
    record = replace(RECORD, lifecycle=(away, killed), kind_record=KindRecord())
    shown = {line.id: render_fragment(line, now=NOW) for line in timeline(record, [], [], assigned_node="")}
    ours, theirs = (next(html for html in shown.values() if text in html) for text in ("Until 09:05.", "Stopping"))
    assert "<details" not in ours
    assert "Kubernetes: Killing" in theirs
