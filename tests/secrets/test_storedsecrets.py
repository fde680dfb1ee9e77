"""Secrets: setting and deleting them, who gets which and how, and where a value is and is not found, which is on no page."""

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone
from hypothesis import given, strategies as st

from grid.clusters import manifests as cluster_manifests
from grid.core.errors import Rejected
from grid.database.encryption import Undecryptable, decrypt, encrypt, encrypt_again
from grid.executions.spec import EnvironmentSpec, ExecutionSpec, SecretSpec
from grid.kube.objects import RawObject
from grid.kube.resources import DEPLOYMENTS, SECRETS
from grid.models import AuditEntry, Environment, Project, StoredSecret, User
from grid.secrets import storedsecrets
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
from tests.clusters.test_cluster_life import notes, running_cluster
from tests.conftest import People
from tests.controller.world import World, fresh, in_world
from tests.executions.executing import offer_clusters, page
from tests.executions.test_manifests import spec
from tests.support.builders import NAMESPACE
from tests.support.shop import NOW, OWNER, Shop

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


def stored_in_shop(shop: Shop, name: str, **changed: Any) -> StoredSecret:
    owner = shop.people.owner
    given: dict[str, Any] = {"owner": owner, "project": None, "is_file": False, "value": VALUE, "now": NOW}
    return storedsecrets.put(by=owner, name=name, **(given | changed))


def values_in(world: World, name: str) -> Mapping[str, str]:
    (secret,) = [
        stored_in_shop
        for stored_in_shop in world.cluster.objects(SECRETS)
        if stored_in_shop["metadata"]["name"] == name
    ]
    return {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}


def variables_of(pod: RawObject) -> dict[str, Any]:
    return {variable["name"]: variable for variable in pod["spec"]["containers"][0]["env"]}


@in_world
async def test_program_gets_secrets_as_variable_and_file(shop: Shop) -> None:
    stored_in_shop(shop, "DB_PASSWORD", owner=None, project=shop.project)
    stored_in_shop(shop, "key.pem", is_file=True, value="line\nline\n")
    execution, world = shop.launch(), World()
    await world.step(world.controller())
    name = f"{execution.object_name}-secrets"
    assert values_in(world, name) == {"DB_PASSWORD": VALUE, "key.pem": "line\nline\n"}
    pod = world.pod_of(execution)
    assert VALUE not in json.dumps(pod)
    reference = {"secretKeyRef": {"name": name, "key": "DB_PASSWORD"}}
    assert variables_of(pod)["DB_PASSWORD"] == {"name": "DB_PASSWORD", "valueFrom": reference}
    (volume,) = [item for item in pod["spec"]["volumes"] if item["name"] == "secrets"]
    assert volume["secret"]["secretName"] == name
    assert volume["secret"]["items"] == [{"key": "key.pem", "path": "key.pem"}]
    (mount,) = [item for item in pod["spec"]["containers"][0]["volumeMounts"] if item["name"] == "secrets"]
    assert (mount["mountPath"], mount["readOnly"]) == ("/mnt/secrets", True)


@in_world
async def test_environment_variable_can_refer_to_a_secret(shop: Shop) -> None:
    """Kubernetes expands only what comes earlier in the list."""
    address = "postgres://grid:$(DB_PASSWORD)@db/grid"
    Environment.objects.filter(pk=shop.workspace.pk).update(variables={"A": "$(Z)", "DATABASE": address, "Z": "kept"})
    for name in ("DB_PASSWORD", "Z"):
        stored_in_shop(shop, name)
    execution, world = shop.launch(), World()
    await world.step(world.controller())
    variables = variables_of(world.pod_of(execution))
    order = list(variables)
    assert variables["DATABASE"]["value"] == address
    assert order.index("DB_PASSWORD") < order.index("DATABASE")
    assert order.index("Z") < order.index("A"), "also one that replaces a variable of the environment"
    assert variables["Z"]["valueFrom"]["secretKeyRef"]["name"].endswith("-secrets")


@in_world
async def test_execution_with_deleted_secret_ends_with_a_sentence(shop: Shop) -> None:
    secret = stored_in_shop(shop, "DB_PASSWORD")
    execution, world = shop.launch(), World()
    storedsecrets.delete(secret, by=shop.people.owner)
    await world.step(world.controller())
    assert (fresh(execution).state, execution.reason) == ("error", "secret_missing")
    assert execution.words(OWNER) == "Its secret DB_PASSWORD was deleted after the launch. Launch again without it."
    assert not world.pods() and execution.slots_freed_at is not None


@pytest.mark.parametrize("is_deleted", [False, True])
def test_drift_repair_restores_secrets_except_deleted_ones(shop: Shop, is_deleted: bool) -> None:
    secret = stored_in_shop(shop, "DB_PASSWORD")

    @in_world
    async def repaired() -> None:
        world, controller, execution = await running_cluster(shop)
        name = f"{execution.object_name}-secrets"
        if is_deleted:
            storedsecrets.delete(secret, by=shop.people.owner)
        else:
            world.cluster.remove(SECRETS, name, namespace=NAMESPACE)
        world.cluster.remove(DEPLOYMENTS, f"{execution.object_name}-worker", namespace=NAMESPACE)
        await controller.audit()
        await world.step(controller)
        assert fresh(execution).state == "running"
        assert values_in(world, name) == {"DB_PASSWORD": VALUE}, "a running cluster keeps what it was started with"
        made_again = {"Deployment"} | (set() if is_deleted else {"Secret"})
        assert {note.object.partition("/")[0] for note in notes(execution, "made_again")} == made_again

    repaired()


@pytest.fixture
def client(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def sent(client: Client, address: str, values: Mapping[str, Any]) -> str:
    answer = client.post(address, values, follow=True)
    text = answer.content.decode()
    assert VALUE not in text, "a value is on a page"
    return f"{answer.status_code} {text}"


def test_secret_is_stored_encrypted_and_page_hides_it(client: Client, alice: User, project: Project) -> None:
    page = sent(client, reverse("secrets"), {"name": "DB_PASSWORD", "value": VALUE, "project": "churn"})
    assert "DB_PASSWORD is stored." in page and "Churn &lt;b&gt;" in page
    secret = StoredSecret.objects.get()
    assert (secret.owner, secret.project) == (alice, project)
    assert VALUE not in secret.ciphertext and decrypt(secret.ciphertext) == VALUE
    assert not AuditEntry.objects.filter(changes__icontains=VALUE).exists()


def test_a_refused_value_is_not_sent_back(client: Client) -> None:
    page = sent(client, reverse("secrets"), {"name": "1 wrong", "value": VALUE})
    assert page.startswith("422") and "begin with a letter" in page
    assert not StoredSecret.objects.exists()


def test_secret_value_can_be_an_unchanged_file(client: Client) -> None:
    key = "-----BEGIN KEY-----\nabc\n-----END KEY-----\n"
    file = SimpleUploadedFile("key.pem", key.encode())
    sent(client, reverse("secrets"), {"name": "key.pem", "is_file": "on", "file": file})
    assert decrypt(StoredSecret.objects.get().ciphertext) == key
    sent(client, reverse("secrets"), {"name": "TYPED", "value": key.replace("\n", "\r\n")})
    assert decrypt(StoredSecret.objects.get(name="TYPED").ciphertext) == key


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"value": "a\0b"}, "Null characters are not allowed"),
        ({"file": SimpleUploadedFile("x", b"\xff\xfe")}, "This file is not text"),
        ({"file": SimpleUploadedFile("x", b"y" * 17_000)}, "this file has 17,000 bytes"),
        ({"value": "v", "file": SimpleUploadedFile("x", b"y")}, "not both"),
        ({"value": "v", "project": "theirs"}, "Choose one of your projects"),
        ({"value": "v", "name": "A" * 101}, "at most 100 characters"),
    ],
)
def test_invalid_secret_is_reported_at_its_field(client: Client, values: dict[str, Any], sentence: str) -> None:
    page = sent(client, reverse("secrets"), {"name": "KEY", **values})
    assert page.startswith("422") and sentence in page


@pytest.mark.usefixtures("runtime")
def test_the_launch_form_names_what_the_launch_gets(people: People) -> None:
    project = offer_clusters(people)
    StoredSecret.objects.create(name="TEAM_KEY", project=project, ciphertext="x")
    StoredSecret.objects.create(name="OWN_KEY", owner=people.owner, ciphertext="x")
    StoredSecret.objects.create(name="THEIR_KEY", owner=people.teammate, ciphertext="x")
    form = page(people.owner, "?kind=workspace")
    assert "OWN_KEY, TEAM_KEY" in form and "THEIR_KEY" not in form


def test_project_secret_is_listed_only_on_project_page(client: Client, project: Project) -> None:
    StoredSecret.objects.create(name="TEAM_KEY", project=project, ciphertext="x")
    assert "TEAM_KEY" in client.get(reverse("project-secrets", args=["churn"])).content.decode()
    assert "TEAM_KEY" not in client.get(reverse("secrets")).content.decode()


def test_deleted_secret_stays_for_active_executions_with_notice(client: Client, project: Project) -> None:
    secret = StoredSecret.objects.create(name="TEAM_KEY", project=project, ciphertext="x")
    page = sent(client, reverse("project-secret-delete", args=["churn", secret.pk]), {})
    assert "TEAM_KEY was deleted. Active executions keep it until they end." in page
    assert not StoredSecret.objects.exists()
