"""Central configuration: typed, bounded, audited, and in force at once."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import given, strategies as st

from dashboard.configuration import setting_effects
from dashboard.configuration.setting_effects import Consequence
from grid import configuration as centralconfig
from grid.configuration import (
    CLUSTER_SETTINGS,
    FRAMEWORK_SETTINGS,
    REGISTRY,
    ChangedMeanwhile,
    Setting,
    apply,
    cluster_policy,
    overrides,
    plan,
)
from grid.core.errors import Rejected
from grid.core.wording import plural
from grid.models import AuditEntry, ConfigRecord, Execution, ExecutionLog, LifecycleEntry, Session, State, User
from tests.clusters.clustering import make_cluster
from tests.conftest import People
from tests.executions.executing import make_execution, make_project
from tests.support.builders import MOMENT
from tests.support.settings import change, reset
from tests.test_query_plans import scans

DRAIN = CLUSTER_SETTINGS["drain_seconds"].key
DASK_DRAIN = FRAMEWORK_SETTINGS["dask"]["drain_seconds"].key
KEY = centralconfig.MAXIMUM_EXECUTIONS_PER_USER.key
QUEUE = centralconfig.GLOBAL_QUEUE_LIMIT.key
HOUR = 3600
STAYS = "Their running executions continue; new ones wait."
STUCK = "2 queued launches need more slots than that and cannot start."


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


def ago(**span: float) -> Any:
    return MOMENT - timedelta(**span)


def logs(count: int) -> str:
    return plural(count, "log", "logs")


def time_limit(seconds: int, before: int = HOUR) -> Consequence:
    begun = [("bob", ago(minutes=9)), ("alice", ago(minutes=11)), ("bob", ago(minutes=12)), ("alice", ago(hours=3))]
    return setting_effects.time_limit(begun, seconds=seconds, before=before, now=MOMENT)


@pytest.mark.parametrize(
    ("seconds", "sentence", "is_loss"),
    [
        (600, "3 executions would end now: 2 of alice and 1 of bob.", True),
        (12 * 60, "1 execution would end now: 1 of alice.", True),  # one that is exactly as old continues
        (4 * HOUR - 1, "No execution would end now.", False),
    ],
)
def test_a_shorter_limit_names_whose_executions_would_end(seconds: int, sentence: str, is_loss: bool) -> None:
    assert time_limit(seconds, before=4 * HOUR) == Consequence(sentence, is_loss)


@pytest.mark.parametrize("seconds", [HOUR, HOUR + 1])
def test_a_longer_limit_ends_nothing(seconds: int) -> None:
    assert time_limit(seconds) == Consequence("No execution ends now; those under the limit get the longer time.")


@pytest.mark.parametrize(
    ("limit", "sentence", "is_loss"),
    [
        (30, "Queued executions that fit start at once.", False),
        (20, "Nobody is above the limit.", False),
        (
            0,
            f"2 people are above it: alice (20 slots) and bob (1 slot). {STAYS} {STUCK} Nobody can start anything.",
            True,
        ),
    ],
)
def test_a_limit_of_slots_names_who_is_above_it(limit: int, sentence: str, is_loss: bool) -> None:
    consequence = setting_effects.slots_per_user({"bob": 1, "alice": 20}, [1, 11], limit=limit, before=25)
    assert consequence == Consequence(sentence, is_loss)


@pytest.mark.parametrize(
    ("expired", "days", "before", "sentence"),
    [
        (7, 30, 90, "7 logs would be deleted within the hour."),
        (101, 30, 90, "More than 100 logs would be deleted within the hour."),
        (0, 30, 90, "Nothing is old enough yet."),
        (7, 0, 30, "Nothing is deleted now. Earlier deletions are not undone."),
    ],
)
def test_a_shorter_retention_counts_what_is_deleted(expired: int, days: int, before: int, sentence: str) -> None:
    consequence = setting_effects.retention(expired, days=days, before=before, counted=logs, at_most=100)
    assert consequence == Consequence(sentence, is_loss="would be" in sentence)


Effect = Callable[..., str]


@pytest.fixture
def effect(db: None) -> Effect:
    """Return what changing one setting says now."""

    def effect(setting: Setting, text: str) -> str:
        changes = centralconfig.plan({setting.key: text}, centralconfig.overrides())
        return setting_effects.effects(changes, now=timezone.now())[setting.key].text

    return effect


@pytest.mark.parametrize("setting", REGISTRY.values(), ids=lambda setting: setting.key)
def test_setting_effects_have_a_sentence_without_history_scan(effect: Effect, setting: Setting) -> None:
    is_counted = (REGISTRY[setting.general] if setting.general else setting) in setting_effects._COUNTED
    assert setting.effect is not None or is_counted, "give it an `effect`, or count it in setting_effects._COUNTED"
    other = setting.default - 1 if setting.default > setting.range.minimum else setting.default + 1
    with CaptureQueriesContext(connection) as queries:
        assert effect(setting, setting.written(other)).endswith(".")
    assert list(scans(queries)) == []


def test_executions_in_the_state_of_a_timeout_are_counted(effect: Effect, people: People) -> None:
    project = make_project(people.owner, people.teammate)
    recent = timezone.now() - timedelta(minutes=1)
    for state in (State.QUEUED, State.DEPLOYING, State.PREPARING):
        make_execution(people.owner, project, state=state)
        make_execution(people.owner, project, state=state, state_since=recent)
    make_execution(people.owner, project, state=State.ERROR, settled_at=MOMENT, ended_at=MOMENT)
    make_execution(people.teammate, project, access_lost_at=MOMENT)
    make_execution(people.teammate, project, access_lost_at=MOMENT, stop_requested_at=MOMENT)
    for setting in (centralconfig.DEPLOYING_TIMEOUT, centralconfig.PREPARING_TIMEOUT, centralconfig.OVER_QUOTA_TIMEOUT):
        assert effect(setting, "600") == "1 execution would end now: 1 of alice."
    assert effect(centralconfig.ACCESS_LOST_TIMEOUT, "60") == "1 execution would end now: 1 of bob."


def test_slots_are_summed_by_person_including_attached_clusters(effect: Effect, people: People) -> None:
    project = make_project(people.owner)
    make_execution(people.owner, project, slots=3, slots_reserved_at=MOMENT)
    make_execution(people.owner, project, slots=2, slots_reserved_at=MOMENT)
    first = make_execution(people.owner, project, state=State.QUEUED)
    make_execution(people.owner, project, state=State.QUEUED, slots=4, attached_to=first)
    text = effect(centralconfig.MAXIMUM_EXECUTIONS_PER_USER, "4")
    assert "alice (5 slots)" in text and "1 queued launch needs more slots" in text
    assert effect(centralconfig.GLOBAL_QUEUE_LIMIT, "1").startswith("1 launch waits now; queued ones stay.")


def test_ending_sessions_are_counted_by_last_use_and_login(effect: Effect, admin: Any) -> None:
    assert effect(centralconfig.SESSION_IDLE, "300") == "No session would end now."
    session = Session.objects.all()
    session.update(seen_at=timezone.now() - timedelta(minutes=10))
    assert effect(centralconfig.SESSION_IDLE, "300") == "1 session would end now: 1 of ada-admin."
    assert effect(centralconfig.SESSION_ABSOLUTE, "300") == "No session would end now."
    session.update(created_at=timezone.now() - timedelta(minutes=10))
    assert effect(centralconfig.SESSION_ABSOLUTE, "300") == "1 session would end now: 1 of ada-admin."


def test_logins_that_would_be_locked_are_named(effect: Effect) -> None:
    AccessAttempt.objects.create(username="mallory", ip_address="10.0.0.9", user_agent="", failures_since_start=8)
    assert effect(centralconfig.LOGIN_FAILURES_AT_ADDRESS, "5") == "1 login would be locked now: mallory at 10.0.0.9."
    assert effect(centralconfig.LOGIN_FAILURES_OF_ADDRESS, "5") == "1 login would be locked now: 10.0.0.9."
    assert effect(centralconfig.LOGIN_FAILURES_OF_NAME, "5") == "1 login would be locked now: mallory."
    AccessAttempt.objects.update(failures_since_start=12, attempt_time=timezone.now() - timedelta(minutes=5))
    assert effect(centralconfig.LOGIN_COOL_OFF, "60") == "1 login would be unlocked now: mallory at 10.0.0.9."


def test_rows_older_than_a_shorter_retention_are_counted(effect: Effect, people: People) -> None:
    old = timezone.now() - timedelta(days=20)
    ended: dict[str, Any] = {"state": State.STOPPED, "ended_at": old, "settled_at": old}
    execution = make_execution(people.owner, make_project(people.owner), **ended)
    ExecutionLog.objects.create(execution=execution, text="bye", at=old)
    LifecycleEntry.objects.create(execution=execution, at=old, source="kubernetes", reason="Pulled", event_uid="1")
    AuditEntry.objects.create(actor_name="ada", action="changed", object_type="setting", object_id="x", at=old)
    for setting, noun in {
        centralconfig.EXECUTION_RETENTION: "ended execution",
        centralconfig.LOG_RETENTION: "log",
        centralconfig.LIFECYCLE_RETENTION: "event",
        centralconfig.AUDIT_RETENTION: "record",
    }.items():
        assert effect(setting, "10") == f"1 {noun} would be deleted within the hour."
        assert effect(setting, "30") == "Nothing is old enough yet."


def test_worker_limit_concerns_clusters_of_following_frameworks(effect: Effect, people: People) -> None:
    make_cluster(people.owner, make_project(people.owner))
    most, of_dask = CLUSTER_SETTINGS["maximum_workers"], FRAMEWORK_SETTINGS["dask"]["maximum_workers"]
    assert Execution.objects.get().workers_maximum == 5
    assert effect(most, "3").startswith("1 running cluster may grow beyond it: 1 of alice.")
    assert effect(of_dask, "3").startswith("1 running cluster may grow beyond it: 1 of alice.")
    assert "no running one" in effect(FRAMEWORK_SETTINGS["ray"]["maximum_workers"], "3")
    change(of_dask.key, "50", actor=people.admin)
    assert (
        effect(most, "3")
        == "Applies to new and resized clusters; no running one may grow beyond it. Dask has its own value."
    )
