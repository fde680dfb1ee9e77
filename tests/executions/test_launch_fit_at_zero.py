"""The card beside the launch form for a pool that is scaled to zero: by its nodes as they were when last seen, and without advice where
nobody has seen any."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from dashboard.executions.viewmodels.fit_card import ClusterKnown, FitQuestion, TierChoice, fit_card
from dashboard.executions.viewmodels.launch import slots
from grid.diagnosis.launchfit import LaunchPool
from grid.diagnosis.nodetemplates import TemplateTally
from grid.kube.objects import Node
from grid.kube.resources import CONFIG_MAPS
from grid.models import HardwareTier
from grid.runtime import Runtime
from tests.browser.administering import AUTOSCALER
from tests.conftest import People
from tests.executions.executing import put
from tests.executions.launching import offer_clusters
from tests.executions.test_fit_card import AT_ZERO, FULL, plan, room
from tests.executions.test_launch_fit import asked
from tests.support import builders
from tests.support.builders import decode
from tests.support.cluster import FakeCluster


def test_tier_is_advised_only_where_pool_surely_takes_it() -> None:
    elsewhere = TierChoice("tier", "gpu", "Elsewhere", (plan(1, "Elsewhere", "gpu"),), 0)
    question = FitQuestion((plan(4),), 1, Decimal(0), choices=(elsewhere,))
    for at_zero, advised in (
        (LaunchPool("gpu", (), 3), []),
        (replace(AT_ZERO, name="gpu"), ["Elsewhere"]),
        (replace(AT_ZERO, name="gpu", remembered=room(8, empty=0)), []),
    ):
        known = ClusterKnown({"default": FULL, "gpu": at_zero})
        card = fit_card(question, known, slots(used=0, queued=0, maximum=5))
        assert [tier.name for tier in card.suggestions] == advised


@pytest.mark.django_db
def test_verdict_of_pool_at_zero_uses_its_last_nodes(people: People, cluster: FakeCluster, runtime: Runtime) -> None:
    offer_clusters(people)
    put(runtime, cluster, CONFIG_MAPS, builders.config_map("status", {"status": AUTOSCALER}, namespace="kube-system"))
    assert "is known only when one has started" in asked(people)
    tally = TemplateTally()
    tally.count(decode(builders.node("gone", cpu="4", memory="16Gi"), Node), {})
    template = tally.template(datetime(2026, 11, 24, tzinfo=UTC))
    assert template is not None
    runtime.templates.take({"default": template})
    assert "It fits, as its nodes were when last seen on 24 November 2026." in asked(people)
    HardwareTier.objects.filter(pk="medium").update(cores="64")
    assert "Can never fit" in asked(people, tier="medium")
