"""Central configuration: typed, bounded, audited, and in force at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid import centralconfig
from grid.errors import Rejected
from grid.models import AuditEntry, ConfigRecord
from tests.conftest import People

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
