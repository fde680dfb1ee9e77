"""A secret of each kind where it belongs, in the world of the table, and programs that print what they know."""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.conf import settings
from django.utils import timezone

from grid.accounts.sessions import stored_key
from grid.audit import entries as audit
from grid.database.encryption import decrypt
from grid.executions.front import access_token, front_key
from grid.executions.manifests import REMOTE, Manifest, build
from grid.executions.spec import parse_spec
from grid.files import stored_remotes as remotes
from grid.jobs import jobs
from grid.kube.resources import EVENTS, PODS, SECRETS
from grid.models import (
    AuditEntry,
    Environment,
    Execution,
    ExecutionLog,
    Job,
    JobRun,
    Project,
    Session,
    State,
    StoredSecret,
    WebhookTarget,
    WorkspaceGrant,
)
from grid.notifications import channels
from grid.runtime import Runtime
from grid.secrets import storedsecrets
from grid.sharing import grants
from tests.access.world import World
from tests.executions.executing import read_executions
from tests.support.builders import NAMESPACE, container_status, event
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill

# Neither a form nor a name gives any of them away.
SALT, OLD_SALT, TYPED, PARAMETER = "hunter22", "hunter21", "typed-swordfish", "given-swordfish"
PROJECTS, OWN, REMOTE_TOKEN = "projects-swordfish", "own-swordfish", "remote-swordfish"
URL = "http://grid:{}@127.0.0.1:9"  # where nothing answers
SETTINGS = {
    "SECRET_KEY": "installation-swordfish",
    "EMAIL_HOST_PASSWORD": "mail-swordfish",
    "ALERTS_TOKEN": "alerts-swordfish",
    "LOG_RECEIVER_AUTHORIZATION": "receiver-swordfish",
    "LOG_RECEIVER_URL": "logs-swordfish",
    "PROMETHEUS_URL": "prometheus-swordfish",
}
ENCRYPTION_KEY, DATABASE_PASSWORD, WEBHOOK = "encryption-swordfish", "database-swordfish", "hook-swordfish"


@dataclass(frozen=True)
class Planted:
    """`secrets` by kind; `places` has for each the text where it is kept, or a test would look for what is nowhere."""

    world: World
    workspace: Execution
    run: Execution
    failed: Execution
    secrets: Mapping[str, str]
    places: Mapping[str, str]

    def show(self, cluster: FakeCluster, runtime: Runtime) -> None:
        """Have the objects of what was launched in the cluster, and its programs print all that they were given."""
        self.world.show(cluster, runtime)
        for execution in (self.workspace, self.run):
            for manifest in _manifests(execution):
                cluster.put(manifest.resource, manifest.body)
            [pod] = [
                raw_pod for raw_pod in cluster.objects(PODS) if raw_pod["metadata"]["name"] == execution.object_name
            ]
            pod["spec"]["nodeName"] = "node-a"
            statuses = [container_status(ready=True, restarts=1)]
            cluster.put(PODS, {**pod, "status": {"phase": "Running", "containerStatuses": statuses}})
            printed = ["it begins", *f"it got {_given(execution)}".splitlines()]
            for previous in (False, True):
                cluster.set_log(execution.object_name, printed, namespace=NAMESPACE, container="run", previous=previous)
            message = f"Back-off restarting it with token={access_token(execution.pk)}"
            cluster.put(EVENTS, event(f"e-{execution.pk}", about=pod, reason="BackOff", message=message))
        fill(runtime, cluster)
        read_executions(runtime)

    def found_in(self, text: str) -> list[str]:
        """Return the kinds of the secrets of which a line is in the text: plain, in base64, or quoted for a URL."""
        return [kind for kind, secret in self.secrets.items() if any(form in text for form in _forms(secret))]


def set_secrets(patch: pytest.MonkeyPatch, repositories: Path) -> None:
    """Have a secret in each setting that holds one."""
    for name, value in SETTINGS.items():
        patch.setattr(settings, name, URL.format(value) if name.endswith("URL") else value)
    patch.setattr(settings, "LOG_RECEIVER_AUTHORIZATION", f"Bearer {SETTINGS['LOG_RECEIVER_AUTHORIZATION']}")
    patch.setattr(settings, "ENCRYPTION_KEYS", [ENCRYPTION_KEY])
    database = {**settings.DATABASES["default"], "PASSWORD": DATABASE_PASSWORD}
    patch.setattr(settings, "DATABASES", {**settings.DATABASES, "default": database})
    patch.setattr(settings, "REPOSITORIES", str(repositories))  # or no project's files would be in Git
    patch.setattr(settings, "FRONT_IMAGE", "nginx:1")


def plant(world: World) -> Planted:
    """Store a secret of each kind as the product does, and launch what gets them."""
    ssh_key = _store_secrets(world)
    _change_environments(world)
    workspace, run, failed = _launch(world)
    owner, session, opener, now = world.people["owner"], world.cookies["owner"], grants.new_opener(), timezone.now()
    digest = grants.digest(opener)
    ticket = grants.issue_ticket(workspace, user=owner, session_key=session, opener_digest=digest, now=now)
    grant = grants.exchange_ticket(workspace.pk, ticket, opener, now=now) or ""
    signing_key = channels.set_target(owner, f"https://hooks.example.com/services/{WEBHOOK}")
    target = WebhookTarget.objects.get()
    stored = "\n".join(decrypt(secret.ciphertext) for secret in StoredSecret.objects.all())
    audited = json.dumps(list(AuditEntry.objects.values_list("changes", flat=True)))
    has_grant = WorkspaceGrant.objects.filter(secret_hash=hashlib.sha256(grant.encode()).hexdigest()).exists()
    has_session = Session.objects.filter(pk=stored_key(session)).exists()
    kept: dict[str, tuple[str, str]] = {
        "environment's variable": (SALT, audited + _given(workspace)),
        "environment's earlier variable": (OLD_SALT, audited),
        "typed variable": (TYPED, json.dumps(run.spec["job"]["variables"])),
        "typed parameter": (PARAMETER, json.dumps(JobRun.objects.get(number=2).parameters)),
        "project's secret": (PROJECTS, stored),
        "person's secret": (OWN, stored),
        "SSH key": (ssh_key, stored),
        "remote repository's token": (REMOTE_TOKEN, _given(workspace)),
        "execution's token": (access_token(workspace.pk), _given(workspace)),
        "nginx's key": (front_key(workspace.pk), _given(workspace)),
        "run's token": (access_token(run.pk), _given(run)),
        "grant": (grant, grant if has_grant else ""),
        "session": (session, session if has_session else ""),
        "webhook": (WEBHOOK, target.url),
        "webhook's key": (signing_key, decrypt(target.secret)),
        "encryption key": (ENCRYPTION_KEY, settings.ENCRYPTION_KEYS[0]),
        "database's password": (DATABASE_PASSWORD, settings.DATABASES["default"]["PASSWORD"]),
        **{name: (value, getattr(settings, name)) for name, value in SETTINGS.items()},
    }
    secrets, places = ({kind: pair[side] for kind, pair in kept.items()} for side in (0, 1))
    return Planted(world, workspace, run, failed, secrets, places)


def _store_secrets(world: World) -> str:
    """Store a project's secret, a person's, an SSH key, which is returned, and the credentials of a remote repository."""
    owner, project, now = world.people["owner"], Project.objects.get(pk="churn"), timezone.now()
    StoredSecret.objects.all().delete()  # those of the table have no values
    key = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
    for holder, name, value in ((None, "SHARED", PROJECTS), (owner, "MINE", OWN), (owner, "deploy.pem", key)):
        storedsecrets.put(
            by=owner,
            owner=holder,
            project=None if holder else project,
            name=name,
            is_file=value == key,
            value=value,
            now=now,
        )
    url = "https://git.example.com/churn.git"
    lead = world.people["lead"]
    remotes.put(project, by=lead, url=url, branch="main", username="", secret=REMOTE_TOKEN, now=now)
    Project.objects.filter(pk=project.pk).update(files=Project.Files.REMOTE)
    return key


def _change_environments(world: World) -> None:
    """Set a variable twice, with the audit entries of its form."""
    for environment in Environment.objects.filter(pk__in=("jupyterlab", "script")):
        for value in (OLD_SALT, SALT):
            before = audit.snapshot(environment)
            environment.variables = {"SALT": value}
            environment.save()
            audit.record(actor=world.people["admin"], instance=environment, action="changed", before=before)


def _launch(world: World) -> tuple[Execution, Execution, Execution]:
    """Launch a workspace and two runs of a job; the first run has failed, and its message is the end of its log."""
    client, form = world.client("owner"), {"project": "churn", "tier": "small", "token": "planted"}
    assert client.post("/launch/", {**form, "kind": "workspace", "environment": "jupyterlab"}).status_code == 302
    workspace = Execution.objects.latest("requested_at")
    typed = {"command": "python train.py", "variables": f"NOTE={TYPED}"}
    assert client.post("/launch/", {**form, "kind": "job", "environment": "script", **typed}).status_code == 302
    job, now = Job.objects.latest("created_at"), timezone.now()
    run = jobs.start(job.pk, by="owner", now=now, parameters={"RATE": PARAMETER})
    failed = Execution.objects.get(run__job=job, run__number=1)
    message = f"Its program ended with 1: {SALT} {TYPED} {PROJECTS} {OWN} {REMOTE_TOKEN} {access_token(failed.pk)}"
    Execution.objects.filter(pk=failed.pk).update(
        state=State.FAILED, message=message, reason_values=None, ended_at=now, settled_at=now
    )
    ExecutionLog.objects.create(execution=failed, text=f"it begins\n{message}\n")
    failed.lifecycle.create(at=now, to_state=State.FAILED, reason="failed", message=message)
    return workspace, Execution.objects.get(run=run), Execution.objects.get(pk=failed.pk)


def _manifests(execution: Execution) -> list[Manifest]:
    """Return the objects that the controller would create."""
    spec = parse_spec(execution)
    values = {f"{REMOTE}{name}": text for name, text in remotes.files_for(spec).items()}
    return build(
        spec,
        namespace=NAMESPACE,
        token=access_token(execution.pk),
        anchor_uid="anchor",
        secrets={**storedsecrets.values_for(spec.secrets), **values},
        front_key=front_key(execution.pk),
    )


def _given(execution: Execution) -> str:
    """Return all that is in the Secrets of an execution."""
    bodies = [manifest.body for manifest in _manifests(execution) if manifest.resource is SECRETS]
    return "\n".join(base64.b64decode(value).decode() for body in bodies for value in body["data"].values())


def _forms(secret: str) -> Iterator[str]:
    for line in secret.splitlines():
        if not line.startswith("-----"):
            yield from (line, base64.b64encode(line.encode()).decode().rstrip("="), quote(line, safe=""))
