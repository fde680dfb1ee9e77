"""Central configuration: typed, bounded, audited, and in force at once."""

from collections import Counter
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from grid import centralconfig
from grid.centralconfig import CLUSTER_SETTINGS, FRAMEWORK_SETTINGS, REGISTRY, cluster_policy
from grid.errors import Rejected
from grid.models import AuditEntry, ConfigRecord
from tests.conftest import People

DRAIN = CLUSTER_SETTINGS["drain_seconds"].key
DASK_DRAIN = FRAMEWORK_SETTINGS["dask"]["drain_seconds"].key
KEY = centralconfig.MAXIMUM_EXECUTIONS_PER_USER.key


def test_the_keys_of_the_seed_documents_have_their_names_and_defaults() -> None:
    timeouts = "com.cerebro.computegrid.timeouts.sagaStateTimeouts"
    quota = "com.cerebro.domino.computegrid.userExecutionsQuota"
    expected = {
        f"{timeouts}.deployingStateTimeoutSeconds": 3600,
        f"{timeouts}.preparingStateTimeoutSeconds": 3600,
        f"{timeouts}.userExecutionsOverQuotaStateTimeoutSeconds": 86400,
        f"{quota}.maximumExecutionsPerUser": 25,
        f"{quota}.globalExecutionQueueLimit": 1000,
    }
    assert {key: centralconfig.lookup(key).default for key in expected} == expected


def test_every_default_lies_within_its_own_bounds() -> None:
    for setting in centralconfig.REGISTRY.values():
        assert setting.parse(str(setting.default)) == setting.default


def test_without_an_override_the_default_is_in_force(db: None) -> None:
    assert centralconfig.value_of(centralconfig.MAXIMUM_EXECUTIONS_PER_USER) == 25
    assert centralconfig.all_values()[KEY] == 25


def test_a_change_is_in_force_at_once_and_audited(people: People) -> None:
    centralconfig.change(KEY, " 3 ", actor=people.admin)
    assert centralconfig.value_of(centralconfig.MAXIMUM_EXECUTIONS_PER_USER) == 3
    assert centralconfig.all_values()[KEY] == 3
    entry = AuditEntry.objects.get()
    assert (entry.actor_name, entry.object_id, entry.changes) == ("ada-admin", KEY, {"value": [25, 3]})


def test_saving_the_same_value_again_adds_no_audit_entry(people: People) -> None:
    centralconfig.change(KEY, "3", actor=people.admin)
    centralconfig.change(KEY, "3", actor=people.admin)
    assert AuditEntry.objects.count() == 1


def test_a_reset_brings_the_default_back_and_is_audited(people: People) -> None:
    centralconfig.change(KEY, "3", actor=people.admin)
    assert centralconfig.reset(KEY, actor=people.admin) == 25
    assert centralconfig.value_of(centralconfig.MAXIMUM_EXECUTIONS_PER_USER) == 25
    assert AuditEntry.objects.filter(action="reset", changes={"value": [3, 25]}).exists()
    assert not ConfigRecord.objects.exists()


@pytest.mark.parametrize("text", ["", "many", "-1", "100001", "2.5", "1e3", "3 4"])
def test_a_wrong_value_is_refused_at_the_value_and_changes_nothing(people: People, text: str) -> None:
    with pytest.raises(Rejected) as refused:
        centralconfig.change(KEY, text, actor=people.admin)
    assert [problem.path for problem in refused.value.problems] == ["value"]
    assert not ConfigRecord.objects.exists()
    assert not AuditEntry.objects.exists()


def test_a_key_that_does_not_exist_is_refused_at_the_key(people: People) -> None:
    with pytest.raises(Rejected) as refused:
        centralconfig.change("com.example.nothing", "1", actor=people.admin)
    assert [problem.path for problem in refused.value.problems] == ["key"]


@given(st.text(max_size=30))
def test_any_text_is_either_a_value_within_bounds_or_a_sentence(text: str) -> None:
    setting = centralconfig.UNNEEDED_THRESHOLD
    try:
        value = setting.parse(text)
    except ValueError as error:
        assert str(error).endswith(".")
    else:
        assert setting.minimum <= value <= setting.maximum


def test_what_is_not_set_for_a_framework_is_as_for_all_frameworks(people: People) -> None:
    assert cluster_policy("dask").drain_seconds == 60
    centralconfig.change(DRAIN, "90", actor=people.admin)
    centralconfig.change(DASK_DRAIN, "20", actor=people.admin)
    assert [cluster_policy(name).drain_seconds for name in ("dask", "ray", "spark")] == [20, 90, 90]
    assert centralconfig.reset(DASK_DRAIN, actor=people.admin) == 90
    assert centralconfig.value_of(FRAMEWORK_SETTINGS["dask"]["drain_seconds"]) == 90


def test_a_value_of_its_own_is_recorded_even_when_it_equals_that_for_all_frameworks(people: People) -> None:
    centralconfig.change(DASK_DRAIN, "60", actor=people.admin)
    assert AuditEntry.objects.get().changes == {"value": [60, 60]}
    centralconfig.change(DRAIN, "90", actor=people.admin)
    assert cluster_policy("dask").drain_seconds == 60


def test_a_policy_is_one_query_and_has_kubernetes_own_defaults(db: None) -> None:
    with CaptureQueriesContext(connection) as queries:
        policy = cluster_policy("ray")
    assert len(queries) == 1
    assert (policy.autoscaling, policy.target_cpu, policy.target_memory) == (True, 80, 80)
    assert (policy.up_workers, policy.up_percent, policy.up_period_seconds, policy.up_stabilisation_seconds) == (
        *(4, 100, 15, 0),
    )
    assert (policy.down_percent, policy.down_period_seconds, policy.down_stabilisation_seconds) == (100, 15, 300)
    with pytest.raises(ValueError, match=r"There is no framework 'flink'; there are dask, ray, spark."):
        cluster_policy("flink")


@pytest.mark.parametrize(("text", "is_on"), [("off", False), (" OFF ", False), ("0", False), ("on", True), ("1", True)])
def test_a_switch_is_said_as_on_or_off(people: People, text: str, is_on: bool) -> None:
    key = CLUSTER_SETTINGS["autoscaling"].key
    centralconfig.change(key, text, actor=people.admin)
    assert cluster_policy("spark").autoscaling is is_on
    assert [entry.changes for entry in AuditEntry.objects.all()] == ([] if is_on else [{"value": ["on", "off"]}])


@pytest.mark.parametrize("text", ["", "2", "maybe", "-1"])
def test_a_switch_is_nothing_but_on_or_off(people: People, text: str) -> None:
    with pytest.raises(Rejected, match="is neither “on” nor “off”"):
        centralconfig.change(CLUSTER_SETTINGS["autoscaling"].key, text, actor=people.admin)


def test_a_target_and_its_bounds_cannot_contradict_each_other(people: People) -> None:
    lowest, highest = (CLUSTER_SETTINGS[name].key for name in ("minimum_target", "maximum_target"))
    with pytest.raises(Rejected, match=r"The target of CPU of Dask clusters would be 80 percent.*20 to 70"):
        centralconfig.change(highest, "70", actor=people.admin)
    with pytest.raises(Rejected, match="The target of CPU of Ray clusters would be 10 percent"):
        centralconfig.change(FRAMEWORK_SETTINGS["ray"]["target_cpu"].key, "10", actor=people.admin)
    assert not ConfigRecord.objects.exists()
    centralconfig.change(highest, "80", actor=people.admin)
    centralconfig.change(lowest, "80", actor=people.admin)
    with pytest.raises(Rejected, match="Spark clusters the lowest target would be 90 percent and the highest 80"):
        centralconfig.change(FRAMEWORK_SETTINGS["spark"]["minimum_target"].key, "90", actor=people.admin)


def test_putting_a_bound_back_is_refused_while_a_target_needs_it(people: People) -> None:
    lowest, target = (FRAMEWORK_SETTINGS["dask"][name].key for name in ("minimum_target", "target_cpu"))
    centralconfig.change(lowest, "5", actor=people.admin)
    centralconfig.change(target, "10", actor=people.admin)
    with pytest.raises(Rejected, match="would be 10 percent, and people may choose 20 to 100"):
        centralconfig.reset(lowest, actor=people.admin)
    assert cluster_policy("dask").minimum_target == 5
    centralconfig.reset(target, actor=people.admin)
    centralconfig.reset(lowest, actor=people.admin)
    assert cluster_policy("dask").minimum_target == 20


def test_the_documentation_names_every_key_with_its_default() -> None:
    page = (Path(__file__).parent.parent / "docs" / "configuration.md").read_text()
    for setting in centralconfig.REGISTRY.values():
        if not setting.general:
            assert f"| `{setting.key}` | {setting.written(setting.default)} |" in page, setting.key


def test_no_two_settings_have_one_title() -> None:
    titles = Counter(setting.title for setting in REGISTRY.values())
    assert [title for title, count in titles.items() if count > 1] == []
