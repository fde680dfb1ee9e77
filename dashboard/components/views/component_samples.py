"""What the component page shows of launches, waits, logs and sizes: a sample of each state, by the code that makes the real ones."""

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from dashboard.executions.viewmodels import launch
from dashboard.logs.viewmodels.knowledge import FoundCount, KnowledgeLine
from dashboard.nodes.viewmodels.misconfigured import AdminFacts, admin_fragments, misfits, refused_by_namespace
from dashboard.queue.viewmodels.waiting import queue_fragments, queue_row
from dashboard.shell.viewmodels.live import Fragment
from dashboard.shell.viewmodels.states import StatusLine
from dashboard.starts.viewmodels.expected_wait import brief_wait, launch_wait, wait_note, with_note
from dashboard.usage.viewmodels.sizehints import SizeFacts, size_note
from grid.core.translation import gettext as _
from grid.diagnosis.launchfit import AlikeNodes, LaunchPool, PodPlan, QueuePlace
from grid.diagnosis.logfindings import LogFinding
from grid.diagnosis.nodeimages import ImagePull
from grid.diagnosis.nodeshapes import NodeShape, PoolShapes
from grid.diagnosis.shortages import NamespaceLimits, PodNeeds, TierPromise, phantoms
from grid.kube.limits import QuotaStatus, ResourceQuota
from grid.kube.objects import Metadata
from grid.queue.wait_estimate.inputs import WaitEstimate
from grid.runtime.executionrows import ExecutionRow
from grid.tiers.rightsize import SizedTier, SmallerTier
from grid.tiers.tierdoctor import TierRequest

LONG_NAME = "a-name-that-is-as-long-as-kubernetes-allows-it-to-be-and-ends-only-here-0123456789"
_GIB = 2**30
_OF_SLOTS = _("You use 25 of 25 slots; this starts by itself when one is free. It is number 4 of yours.")
_EXPECTED = WaitEstimate(1500.0, 1200.0, 2400.0, _("Your executions usually end after another 24 minutes."), 4)
_ROOM = WaitEstimate(1250.0, 600.0, 2400.0, _("Room for it is usually free after another 20 minutes."))
_NOT_EXPECTED = WaitEstimate(None, why=_("Not known yet: too few launches like this one have started."), position=4)


def component_samples(now: datetime) -> dict[str, Any]:
    """Return the context of `components/fragments/component_waits.html`."""
    expected = (_EXPECTED, replace(_EXPECTED, expected=0.0), replace(_EXPECTED, expected=40_000.0), _NOT_EXPECTED)
    return {
        "fits": _fits(),
        "checks": _checks(now),
        "fragments": [*_queue(now), *_misconfigured()],
        "wait_notes": [
            with_note(StatusLine("wait", "Queued", _OF_SLOTS), wait_note(estimate)) for estimate in expected
        ],
        "knowledge": _knowledge(now),
        "findings": _FINDINGS,
        "size_notes": _size_notes(),
    }


def _room(free: int, empty: int = 8) -> AlikeNodes:
    rest = {"memory": 32 * _GIB, "pods": 110}
    return AlikeNodes({"cpu": free * 1000, **rest}, {"cpu": empty * 1000, **rest})


def _plan(tier: str, cores: int) -> tuple[PodPlan, ...]:
    return (PodPlan(tier, "default", {"cpu": cores * 1000, "memory": 4 * _GIB, "pods": 1}),)


def _quota(used: str) -> NamespaceLimits:
    status = QuotaStatus(hard={"pods": "10"}, used={"pods": used})
    return NamespaceLimits((ResourceQuota(metadata=Metadata(name="team"), status=status),))


def _fits() -> list[tuple[str, launch.FitCard | None]]:
    """Return a card of each verdict; None is that of an unfinished form."""
    roomy, full = LaunchPool("default", (_room(8),)), LaunchPool("default", (_room(1),), 1)
    growing = replace(full, maximum=5, start_seconds=220.0)
    question = launch.FitQuestion(
        _plan("Large", 4),
        1,
        Decimal("0.19"),
        needs=(PodNeeds("Large", {}, {}),),
        choices=(launch.TierChoice("tier", "small", "Small", _plan("Small", 1), 0),),
    )
    place = QueuePlace(4, _OF_SLOTS, _("Stop something that you no longer need."))
    queued = replace(question, queue=place, expected=launch_wait(_EXPECTED), wait=brief_wait(_EXPECTED))
    queued_unknown = replace(question, queue=place, expected=launch_wait(_NOT_EXPECTED))
    huge = replace(question, pods=_plan("Huge", 64))
    pull = ImagePull(2_254_857_830, 40.0, is_missing=True)
    waiting = replace(question, expected=launch_wait(_ROOM), wait=brief_wait(_ROOM), pull=pull)
    crowded = replace(question, full="5,000 executions wait already, which is the limit.")
    asked: dict[str, tuple[launch.FitQuestion, launch.ClusterKnown]] = {
        "starts-now": (question, launch.ClusterKnown({"default": roomy})),
        "starts-now-pulls": (replace(question, usual_start=53.0, pull=pull), launch.ClusterKnown({"default": roomy})),
        "needs-node": (question, launch.ClusterKnown({"default": growing})),
        "queues": (queued, launch.ClusterKnown({"default": roomy})),
        "queues-unknown": (queued_unknown, launch.ClusterKnown({"default": roomy})),
        "waits-for-room": (question, launch.ClusterKnown({"default": full})),
        "waits-for-room-expected": (waiting, launch.ClusterKnown({"default": full})),
        "never-fits": (huge, launch.ClusterKnown({"default": full})),
        "no-nodes": (question, launch.ClusterKnown({})),
        "refused": (question, launch.ClusterKnown({"default": roomy}, _quota("10"))),
        "nearly-refused": (question, launch.ClusterKnown({"default": roomy}, _quota("9"))),
        "crowded": (crowded, launch.ClusterKnown({"default": roomy})),
        "not-known": (question, launch.ClusterKnown()),
    }
    held = launch.slots(used=3, queued=0, maximum=25)
    return [
        *((name, launch.fit_card(what, known, held)) for name, (what, known) in asked.items()),
        ("unfinished", None),
    ]


def _checks(now: datetime) -> list[launch.CheckLine]:
    def answered(outcome: str, message: str, evidence: str = "") -> launch.CheckLine:
        return launch.check_line(outcome, message, evidence, answered_at=now, is_current=True)

    return [
        # Without the request to ask again, which a page of samples has no answer for.
        replace(launch.check_line("asked", "", "", answered_at=None, is_current=True), is_awaited=False),
        launch.check_line("asked", "", "", answered_at=None, is_current=False),
        answered("confirmed", _("The cluster accepted a dry run of its 5 objects.")),
        answered(
            "refused",
            _("The quota “team” of the namespace is used up."),
            "exceeded quota: team, requested: pods=1, used: pods=10, limited: pods=10",
        ),
        answered("not_known", _("The cluster did not answer.")),
        launch.TOO_OFTEN,
    ]


def _queue(now: datetime) -> list[Fragment]:
    """Return the queue as an operator sees it: what is expected, not known, being computed and held, and nothing at all."""
    row = ExecutionRow(
        id="sample1",
        kind="workspace",
        title="Churn notebook",
        owner_username="scientist",
        owner_id=1,
        project_id="churn",
        project_name="Customer churn",
        project_roles={},
        tier_id="small",
        tier_name="Small",
        environment_name="JupyterLab",
        state="queued",
        state_since=now,
        reason="over_user_slots",
        message="",
        reason_values={"held": 25, "most": 25, "slots": 1, "parts": [["workspace", 1]], "position": 4},
        requested_at=now - timedelta(minutes=7),
        started_at=None,
        object_name="workspace-sample1",
    )
    theirs = replace(
        row, id="sample2", title=LONG_NAME, owner_id=2, owner_username="colleague", kind="cluster", slots=7
    )
    new = replace(row, id="sample3", title="", reason_values=None, kind="job", object_name="job-sample3")
    stopped = replace(
        row,
        id="sample4",
        title="Nightly features",
        reason="held",
        reason_values={"by": "operator", "why": _("The licence server is down.")},
    )
    waits = (
        (row, replace(_EXPECTED, position=1)),
        (theirs, replace(_NOT_EXPECTED, position=2)),
        (new, None),
        (stopped, None),
    )
    rows = [queue_row(queued, wait, 0.0, viewer_id=1, may_order=True) for queued, wait in waits]
    shown = queue_fragments(rows, count=4, hidden=0, accuracy="9 of the last 10 expected waits were right.")
    return [*shown, *queue_fragments([], count=0, hidden=0, accuracy="")[1:]]


def _misconfigured() -> list[Fragment]:
    """Return what admins read of tiers that no node takes and of promises that the namespace breaks."""
    nodes = NodeShape(
        {"cpu": 8000, "memory": 33 * _GIB, "pods": 110}, {"cpu": 500, "memory": _GIB, "pods": 3}, (), 2, 0
    )
    huge = TierRequest("default", {"cpu": 64_000, "memory": 16 * _GIB, "pods": 1})
    promise = TierPromise("small", PodNeeds("Small", {}, {}), 40)
    broken = refused_by_namespace(phantoms([promise], 25, _quota("0")), {"small": "Small"})
    misconfigured = (*misfits([("huge", "Huge", huge)], {"default": PoolShapes("default", (nodes,))}), *broken)
    shown = (*admin_fragments(AdminFacts(misconfigured=misconfigured)), *admin_fragments(AdminFacts()))
    return [fragment for fragment in shown if fragment.region == "misconfigured"]


def _knowledge(now: datetime) -> list[KnowledgeLine]:
    memory = _("The GPU has no memory left.")
    return [
        KnowledgeLine(
            "licence",
            r"LIC-(\d+)",
            _("All licences of product {} are in use."),
            _("Wait until one is free, and launch it again."),
            "/help/",
            is_off=False,
            occurrences=FoundCount(12, now - timedelta(hours=3)),
        ),
        KnowledgeLine("grid.cuda", "CUDA out of memory", memory, _("Use a smaller batch."), "", is_off=False),
        KnowledgeLine("old", LONG_NAME, f"{LONG_NAME} {{}}", LONG_NAME, "", is_off=True),
    ]


_FINDINGS = (
    LogFinding(
        "licence",
        _("All licences of product 17 are in use."),
        "fatal: LIC-17 checkout failed",
        _("Wait until one is free, and launch it again."),
        "/help/",
    ),
    LogFinding(
        "grid.cuda",
        _("The GPU has no memory left."),
        f"torch.cuda.OutOfMemoryError: CUDA out of memory in /{LONG_NAME}/{LONG_NAME}.py",
        _("Use a smaller batch."),
    ),
)


def _size_notes() -> list[tuple[str, object]]:
    small = SizedTier("small", "Small", 1000, 4 * _GIB, 4 * _GIB, 0, "", Decimal("0.05"))
    large = SizedTier("large", "Large", 4000, 16 * _GIB, 16 * _GIB, 0, "", Decimal("0.35"))
    used = SizeFacts(3 * _GIB, 700, 200, 16 * _GIB, 4000, current=large)
    short = replace(used, memory_limit=4 * _GIB, memory_peak=4 * _GIB, ran_out_of_memory=True)
    facts = {
        "used": used,
        "smaller": replace(used, smaller=SmallerTier(small, Decimal("0.30"), 4, 3 * _GIB, 700)),
        "out-of-memory": replace(short, larger=large),
        "out-of-memory-largest": short,
    }
    launched: dict[str, Any] = {"execution_id": "sample1", "workspace_id": "", "is_owner": True}
    return [(f"size-{name}", size_note(fact, **launched)) for name, fact in facts.items()]
