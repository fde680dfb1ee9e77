"""The cluster's own answer on the card: asked for, awaited, given, and missing."""

from datetime import timedelta

import pytest
from django.template.loader import render_to_string
from django.utils import timezone

from dashboard.executions.viewmodels.launch import TOO_OFTEN, CheckLine, check_line
from grid.executions import dryrun
from grid.executions.dryrun import DryRunAnswer
from grid.kube.resources import NODES
from grid.models import CheckOutcome, Execution, HardwareTier, LaunchCheck
from grid.runtime import Runtime
from tests.conftest import People
from tests.executions.executing import FORM, put, sent
from tests.support.builders import MOMENT, node
from tests.support.cluster import FakeCluster
from tests.support.golden import assert_golden

LINES = {
    "awaited": check_line("asked", "", "", answered_at=None, is_current=True),
    "unanswered": check_line("asked", "", "", answered_at=None, is_current=False),
    "confirmed": check_line(
        "confirmed", "The cluster accepted a dry run of its 5 objects.", "", answered_at=MOMENT, is_current=True
    ),
    "refused": check_line(
        "refused", "The quota “team” is used up.", "exceeded <quota>", answered_at=MOMENT, is_current=True
    ),
    "not-known": check_line("not_known", "The cluster did not answer.", "", answered_at=MOMENT, is_current=True),
    "too-often": TOO_OFTEN,
}


@pytest.mark.parametrize("name", LINES)
def test_each_answer_looks_as_stored(name: str) -> None:
    line: CheckLine = LINES[name]
    assert_golden(f"fit-check-{name}", render_to_string("executions/fragments/fit_check.html", {"check": line}))


@pytest.mark.django_db
@pytest.mark.usefixtures("runtime", "offered")
class TestOverHttp:
    def check(self, people: People, **changed: str) -> str:
        status, shown = sent(people.owner, FORM | changed, "/launch/check/")
        assert status == 200
        assert not Execution.objects.exists()
        return shown

    def test_check_is_asked_for_once_and_its_answer_shown(
        self, people: People, runtime: Runtime, cluster: FakeCluster
    ) -> None:
        put(runtime, cluster, NODES, node("node-a", cpu="4", memory="16Gi"))
        assert "Asking the cluster" in self.check(people)
        assert "Asking the cluster" in self.check(people, awaited="on")
        check = LaunchCheck.objects.get()
        dryrun.record(check.pk, DryRunAnswer(CheckOutcome.CONFIRMED, "Five <b>objects</b>."), now=timezone.now())
        shown = self.check(people, awaited="on")
        assert "Confirmed by the cluster" in shown
        assert "every 1s" not in shown
        sent(people.owner, FORM)
        assert Execution.objects.get().pk == check.pk, "the answer was about this very launch"

    def test_launch_that_never_fits_is_not_confirmed_in_green(
        self, people: People, runtime: Runtime, cluster: FakeCluster
    ) -> None:
        """The card and the line beside it: a dry run says nothing of nodes."""
        HardwareTier.objects.filter(pk="small").update(cores="64")
        put(runtime, cluster, NODES, node("node-a", cpu="4", memory="16Gi"))
        self.check(people)
        dryrun.record(LaunchCheck.objects.get().pk, DryRunAnswer(CheckOutcome.CONFIRMED, "Taken."), now=timezone.now())
        shown, card = self.check(people, awaited="on"), sent(people.owner, FORM, "/launch/estimate/")[1]
        why = "asks for 64 cores; the largest node of the pool default offers 4"
        assert "Can never fit" in card
        assert why in card
        assert why in shown
        assert "The cluster accepts it, but it would not start" in shown
        assert "Confirmed by the cluster" not in shown

    def test_awaiting_asks_for_nothing_new_and_ends(self, people: People) -> None:
        assert self.check(people, awaited="on").strip() == ""
        assert not LaunchCheck.objects.exists()
        self.check(people)
        LaunchCheck.objects.update(asked_at=timezone.now() - timedelta(seconds=11))
        shown = self.check(people, awaited="on")
        assert "The controller did not answer in time. You can launch it anyway." in shown
        assert "every 1s" not in shown

    def test_an_answer_belongs_to_who_asked(self, people: People) -> None:
        self.check(people)
        status, shown = sent(people.teammate, FORM | {"awaited": "on"}, "/launch/check/")
        assert (status, shown.strip()) == (200, "")
