"""Central configuration: typed, bounded, audited, and in force at once."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given, strategies as st

from grid import configuration as centralconfig
from grid.configuration import (
    CLUSTER_SETTINGS,
    FRAMEWORK_SETTINGS,
    REGISTRY,
    ChangedMeanwhile,
    apply,
    cluster_policy,
    overrides,
    plan,
)
from grid.core.errors import Rejected
from grid.models import AuditEntry, ConfigRecord, User
from tests.conftest import People
from tests.support.settings import change, reset

DRAIN = CLUSTER_SETTINGS["drain_seconds"].key
DASK_DRAIN = FRAMEWORK_SETTINGS["dask"]["drain_seconds"].key
KEY = centralconfig.MAXIMUM_EXECUTIONS_PER_USER.key
QUEUE = centralconfig.GLOBAL_QUEUE_LIMIT.key


def test_keys_of_seed_documents_keep_names_and_defaults() -> None:
    timeouts = "com.cerebro.computegrid.timeouts.sagaStateTimeouts"
    quota = "com.cerebro.domino.computegrid.userExecutionsQuota"
    expected = {
        f"{timeouts}.deployingStateTimeoutSeconds": 3600,
        f"{timeouts}.preparingStateTimeoutSeconds": 3600,
        f"{timeouts}.userExecutionsOverQuotaStateTimeoutSeconds": 86400,
        f"{quota}.maximumExecutionsPerUser": 25,
        f"{quota}.globalExecutionQueueLimit": 1000,
    }
    assert {key: REGISTRY[key].default for key in expected} == expected


def test_every_default_lies_within_its_own_bounds() -> None:
    for setting in centralconfig.REGISTRY.values():
        assert setting.parse(str(setting.default)) == setting.default


def test_a_change_is_in_force_at_once_and_audited(people: People) -> None:
    change(KEY, " 3 ", actor=people.admin)
    assert centralconfig.value_of(centralconfig.MAXIMUM_EXECUTIONS_PER_USER) == 3
    assert centralconfig.all_values()[KEY] == 3
    entry = AuditEntry.objects.get()
    assert (entry.actor_name, entry.object_id, entry.changes) == ("ada-admin", KEY, {"value": [25, 3]})


def test_a_reset_brings_the_default_back_and_is_audited(people: People) -> None:
    change(KEY, "3", actor=people.admin)
    reset(KEY, actor=people.admin)
    assert centralconfig.value_of(centralconfig.MAXIMUM_EXECUTIONS_PER_USER) == 25
    assert AuditEntry.objects.filter(action="reset", changes={"value": [3, 25]}).exists()
    assert not ConfigRecord.objects.exists()


def test_problems_are_reported_by_key_including_unknown_keys() -> None:
    with pytest.raises(Rejected) as refused:
        plan({KEY: "many", "com.example.nothing": "1", DRAIN: "90", DASK_DRAIN: "0"}, {})
    assert [(problem.path, problem.message) for problem in refused.value.problems] == [
        (KEY, "“many” is not a whole number of slots."),
        ("com.example.nothing", "There is no setting named com.example.nothing."),
        (DASK_DRAIN, "Must be between 1 and 3600 seconds."),
    ]


def test_plan_holds_only_differences_in_registry_order() -> None:
    stored = {DASK_DRAIN: "20", QUEUE: "500"}
    changes = plan({DASK_DRAIN: "", DRAIN: "90", QUEUE: "500", KEY: "25"}, stored)
    assert [(change.setting.key, change.stored, change.wanted, change.before, change.after) for change in changes] == [
        (DRAIN, None, "90", 60, 90),
        (DASK_DRAIN, "20", None, 20, 90),
    ]


def test_concurrent_change_of_a_planned_setting_stores_nothing(people: People) -> None:
    changes = plan({KEY: "3", QUEUE: "500", DRAIN: "90"}, overrides())
    change(QUEUE, "700", actor=people.admin)
    with pytest.raises(ChangedMeanwhile) as refused:
        apply(changes, actor=people.admin)
    assert refused.value.keys == (QUEUE,)
    assert overrides() == {QUEUE: "700"}
    assert AuditEntry.objects.count() == 1


def test_change_of_another_setting_conflicts_only_if_contradicted(people: People) -> None:
    lowest, target = CLUSTER_SETTINGS["minimum_target"].key, CLUSTER_SETTINGS["target_cpu"].key
    changes = plan({target: "40", QUEUE: "500"}, overrides())
    change(KEY, "3", actor=people.admin)
    change(lowest, "50", actor=people.admin)
    with pytest.raises(Rejected) as refused:
        apply(changes, actor=people.admin)
    assert [problem.path for problem in refused.value.problems] == [target]
    assert overrides() == {KEY: "3", lowest: "50"}


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer at a time")
def test_slower_of_two_saving_admins_is_refused() -> None:
    admin = User.objects.create_superuser("ada-admin")
    started = threading.Barrier(2)

    def save(value: str) -> str:
        try:
            changes = plan({KEY: value}, {})
            started.wait(timeout=30)
            apply(changes, actor=admin)
        except ChangedMeanwhile:
            return "told"
        finally:
            connection.close()
        return value

    with ThreadPoolExecutor(2) as threads:
        answers = sorted(threads.map(save, ("3", "4")))
    assert answers == [overrides()[KEY], "told"]
    assert AuditEntry.objects.count() == 1


@given(st.text(max_size=30))
def test_text_is_either_value_within_bounds_or_sentence(text: str) -> None:
    setting = centralconfig.UNNEEDED_THRESHOLD
    try:
        value = setting.parse(text)
    except ValueError as error:
        assert str(error).endswith(".")
    else:
        assert setting.range.minimum <= value <= setting.range.maximum


def test_unset_framework_setting_follows_all_frameworks(people: People) -> None:
    assert cluster_policy("dask").drain_seconds == 60
    change(DRAIN, "90", actor=people.admin)
    change(DASK_DRAIN, "20", actor=people.admin)
    assert [cluster_policy(name).drain_seconds for name in ("dask", "ray", "spark")] == [20, 90, 90]
    reset(DASK_DRAIN, actor=people.admin)
    assert centralconfig.value_of(FRAMEWORK_SETTINGS["dask"]["drain_seconds"]) == 90


def test_policy_takes_one_query_and_a_known_framework(db: None) -> None:
    with CaptureQueriesContext(connection) as queries:
        assert cluster_policy("ray").autoscaling
    assert len(queries) == 1
    with pytest.raises(ValueError, match=r"There is no framework 'flink'; there are dask, ray, spark."):
        cluster_policy("flink")


def test_a_switch_is_said_as_on_or_off(people: People) -> None:
    key = CLUSTER_SETTINGS["autoscaling"].key
    change(key, " OFF ", actor=people.admin)
    assert not cluster_policy("spark").autoscaling
    assert AuditEntry.objects.get().changes == {"value": ["on", "off"]}
    with pytest.raises(Rejected, match="is neither “on” nor “off”"):
        change(key, "maybe", actor=people.admin)


def test_a_target_and_its_bounds_cannot_contradict_each_other(people: People) -> None:
    lowest, highest = (CLUSTER_SETTINGS[name].key for name in ("minimum_target", "maximum_target"))
    with pytest.raises(Rejected, match=r"The target of CPU of Dask clusters would be 80 percent.*20 to 70"):
        change(highest, "70", actor=people.admin)
    with pytest.raises(Rejected, match="The target of CPU of Ray clusters would be 10 percent"):
        change(FRAMEWORK_SETTINGS["ray"]["target_cpu"].key, "10", actor=people.admin)
    assert not ConfigRecord.objects.exists()
    change(highest, "80", actor=people.admin)
    change(lowest, "80", actor=people.admin)
    with pytest.raises(Rejected, match="Spark clusters the lowest target would be 90 percent and the highest 80"):
        change(FRAMEWORK_SETTINGS["spark"]["minimum_target"].key, "90", actor=people.admin)


def test_a_target_and_its_bound_may_change_together(people: People) -> None:
    fields = {"minimum_target": "5", "target_cpu": "10"}
    apply(plan({CLUSTER_SETTINGS[field].key: text for field, text in fields.items()}, {}), actor=people.admin)
    assert (cluster_policy("ray").minimum_target, cluster_policy("ray").target_cpu) == (5, 10)


def test_no_two_settings_have_one_title() -> None:
    titles = Counter(setting.title for setting in REGISTRY.values())
    assert [title for title, count in titles.items() if count > 1] == []
