"""Promises that the namespace breaks, in the admins' list of what is misconfigured."""

import pytest
from django.template.loader import render_to_string

from dashboard.nodes.records import admin_facts
from dashboard.nodes.viewmodels.misconfigured import admin_fragments
from grid.diagnosis.shortages import NamespaceLimits
from grid.kube.limits import ResourceQuota
from tests.executions.executing import make_tier
from tests.support.builders import decode

pytestmark = pytest.mark.django_db


def limits(**hard: str) -> NamespaceLimits:
    return NamespaceLimits((decode({"metadata": {"name": "team"}, "status": {"hard": hard}}, ResourceQuota),))


def shown(known: NamespaceLimits | None) -> str:
    fragments = admin_fragments(admin_facts(None, (), known))
    ids = [fragment.id for fragment in fragments]
    assert len(ids) == len(set(ids))
    return "".join(
        render_to_string(fragment.template, {"id": fragment.id, "x": fragment.context}) for fragment in fragments
    )


def test_tiers_and_slots_beyond_quota_are_named_with_link() -> None:
    make_tier("small", maximum_simultaneous=8)
    page = shown(limits(**{"pods": "10", "count/pods": "9", "requests.cpu": "4"}))
    assert "One user may hold 25 slots, but the quota “team” of the namespace allows 10 pods in all." in page
    assert "It may run 8 at once, but the quota “team” of the namespace has 4 cores (requests.cpu) in all" in page
    assert 'href="/tiers/small/"' in page
    assert 'href="/configuration/"' in page
