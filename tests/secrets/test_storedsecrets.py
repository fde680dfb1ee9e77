"""Stored secrets: who gets which, what is refused, and where a value is and is not found."""

from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings
from django.utils import timezone
from hypothesis import given, strategies as st

from grid.clusters import manifests as cluster_manifests
from grid.core.errors import Rejected
from grid.database.encryption import Undecryptable, decrypt, encrypt, encrypt_again
from grid.executions.spec import EnvironmentSpec, ExecutionSpec, SecretSpec
from grid.models import AuditEntry, Project, StoredSecret, User
from grid.secrets.storedsecrets import (
    MAXIMUM_BYTES,
    MOST_OF_A_HOLDER,
    SecretMissing,
    delete,
    for_launch,
    put,
    values_for,
)
from tests.clusters import cluster_specs
from tests.executions.test_manifests import spec

VALUE = "correct horse battery staple"
KEYS = ["k" * 40]


def stored(by: User, name: str = "KEY", **changed: Any) -> StoredSecret:
    given: dict[str, Any] = {"owner": by, "project": None, "is_file": False, "value": VALUE, "now": timezone.now()}
    return put(by=by, name=name, **{**given, **changed})


def problems(make: Callable[[], Any]) -> str:
    with pytest.raises(Rejected) as refused:
        make()
    return " ".join(str(problem) for problem in refused.value.problems)


@given(st.text(min_size=8, max_size=50))
def test_encrypted_secret_decrypts_with_any_configured_key(text: str) -> None:
    with override_settings(ENCRYPTION_KEYS=KEYS):
        first = encrypt(text)
    assert text not in first
    with override_settings(ENCRYPTION_KEYS=["another" * 6, *KEYS]):
        assert decrypt(first) == text
        second = encrypt_again(first)
    with override_settings(ENCRYPTION_KEYS=["another" * 6]):
        assert decrypt(second) == text
        with pytest.raises(Undecryptable):
            decrypt(first)


def test_execution_gets_project_and_own_secrets_with_nearest_winning(alice: User, project: Project) -> None:
    other = Project.objects.start(owner=alice, id="other", name="Other")
    bob = User.objects.create_user(username="bob")
    of_project = stored(alice, "A", owner=None, project=project)
    stored(alice, "B", owner=None, project=project)
    everywhere = stored(alice, "B")
    stored(alice, "C")
    here = stored(alice, "C", project=project)
    stored(alice, "D", project=other)
    stored(bob, "E")
    assert for_launch(alice, project) == [of_project, everywhere, here]
    assert [secret.name for secret in for_launch(bob, project)] == ["A", "B", "E"]


def test_storing_a_name_again_replaces_value_for_later_launches(alice: User, project: Project) -> None:
    first = stored(alice)
    again = stored(alice, value="another")
    assert first.pk == again.pk
    assert values_for(_with(again).secrets) == {"KEY": "another"}


def test_missing_or_unreadable_secret_is_reported(alice: User) -> None:
    secret = stored(alice)
    wanted = _with(secret)
    with override_settings(ENCRYPTION_KEYS=["another" * 6]), pytest.raises(SecretMissing, match="Set its value again"):
        values_for(wanted.secrets)
    delete(secret, by=alice)
    with pytest.raises(SecretMissing, match="KEY was deleted after the launch"):
        values_for(wanted.secrets)


def test_invalid_secret_name_is_refused_with_a_sentence(alice: User, project: Project) -> None:
    assert "begin with a letter" in problems(lambda: stored(alice, "A\nB"))
    assert "set by Compute Grid itself" in problems(lambda: stored(alice, "GRID_X"))
    assert "service-account.json" in problems(lambda: stored(alice, "../etc", is_file=True))
    for wrong in (".", "..", "..env", "..data"):
        assert "not two dots first" in problems(lambda name=wrong: stored(alice, name, is_file=True))  # type: ignore[misc]
    assert stored(alice, ".env", is_file=True).name == ".env"
    assert "Type the value" in problems(lambda: stored(alice, value=""))
    assert "16 KiB" in problems(lambda: stored(alice, value="é" * (MAXIMUM_BYTES // 2 + 1)))
    assert "Use text" in problems(lambda: stored(alice, value="a\0b"))
    for number in range(MOST_OF_A_HOLDER):
        stored(alice, f"N{number}", owner=None, project=project)
    assert "which is the limit" in problems(lambda: stored(alice, "ONE_MORE", owner=None, project=project))
    assert stored(alice, "N0", owner=None, project=project, value="still replaced").name == "N0"


@pytest.mark.parametrize(
    "name",
    [
        *("PATH", "LD_PRELOAD", "BASH_ENV", "PROMPT_COMMAND", "PYTHONSTARTUP", "IPYTHONDIR", "MPLBACKEND", "PERL5OPT"),
        *("RUBYOPT", "NODE_OPTIONS", "_JAVA_OPTIONS", "R_PROFILE_USER", "git_trace", "SSH_AUTH_SOCK", "https_proxy"),
        *("npm_config_script_shell", "DASK_DISTRIBUTED__WORKER__PRELOAD", "NODE_TLS_REJECT_UNAUTHORIZED"),
    ],
)
def test_code_loading_variable_is_refused_for_a_project(alice: User, project: Project, name: str) -> None:
    """A contributor's value would be obeyed by the next workspace of every member, with that member's HOME and own secrets."""
    assert "so a project cannot set it for them" in problems(lambda: stored(alice, name, owner=None, project=project))
    assert stored(alice, name).owner == alice, "one's own programs are one's own business"
    assert stored(alice, name, project=project).project == project
    assert stored(alice, name, owner=None, project=project, is_file=True).is_file, "nothing obeys a file of that name"


def test_cluster_pods_get_secrets_overriding_environment_variables() -> None:
    environment = EnvironmentSpec(
        id="science", name="Science", image="science:1", variables={"KEY": "weaker", "OTHER": "stays"}
    )
    wanted = cluster_specs.spec(secrets=(SecretSpec(id=1, name="KEY"),), environment=environment)
    made = cluster_manifests.first(wanted, namespace="grid", secrets={"KEY": VALUE})
    made += cluster_manifests.workers(wanted, namespace="grid", anchor_uid="", head_address="10.0.0.1")
    pods = [manifest.body["spec"]["template"]["spec"] for manifest in made if manifest.resource.kind == "Deployment"]
    assert len(pods) == 2
    for pod in pods:
        variables = pod["containers"][0]["env"]
        (key,) = [variable for variable in variables if variable["name"] == "KEY"]
        assert key["valueFrom"]["secretKeyRef"]["name"] == f"{wanted.object_name}-secrets"
        assert "OTHER" in {variable["name"] for variable in variables}


def test_audit_log_names_changed_secret_without_value(alice: User, project: Project) -> None:
    secret = stored(alice, owner=None, project=project)
    stored(alice, owner=None, project=project, value="another value")
    delete(secret, by=alice)
    entries = AuditEntry.objects.filter(object_type="project", object_id=project.pk).order_by("id")
    changes = [entry.changes["secret"] for entry in entries]
    assert changes == [["", "KEY"], ["KEY", "KEY, a new value"], ["KEY", ""]]


def test_secrets_are_reencrypted_with_first_key_and_failures_reported(
    alice: User, capsys: pytest.CaptureFixture[str]
) -> None:
    with override_settings(ENCRYPTION_KEYS=KEYS):
        secret = stored(alice)
    with override_settings(ENCRYPTION_KEYS=["another" * 6, *KEYS]):
        call_command("encrypt_again")
    assert capsys.readouterr().out == "1 secret encrypted with the first key.\n"
    secret.refresh_from_db()
    with override_settings(ENCRYPTION_KEYS=["another" * 6]):
        assert decrypt(secret.ciphertext) == VALUE
    with override_settings(ENCRYPTION_KEYS=["third" * 8]), pytest.raises(CommandError, match="1 secret cannot be read"):
        call_command("encrypt_again")


def _with(secret: StoredSecret) -> ExecutionSpec:
    return spec(secrets=(SecretSpec(id=secret.pk, name=secret.name),))
