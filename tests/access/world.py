"""The people, executions and objects that the table speaks of, and how each of its addresses is asked."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth.models import Group
from django.contrib.auth.tokens import default_token_generator
from django.db import transaction
from django.test import Client
from django.test.client import ClientHandler
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlencode, urlsafe_base64_encode

from grid.accounts.sessions import SessionStore
from grid.configuration import UNNEEDED_SECONDS
from grid.core.gitnames import MAIN
from grid.executions.launchrequest import LaunchRequest
from grid.executions.request import submit
from grid.files import stored_remotes as remotes
from grid.files.changing import upload
from grid.files.repositories import Repositories
from grid.kube.resources import CONFIG_MAPS, NODES, PODS
from grid.models import (
    Alert,
    AlertSilence,
    Announcement,
    AppShare,
    AuditEntry,
    EmailChange,
    Environment,
    Execution,
    HardwareTier,
    Job,
    KnowledgeEntry,
    PortShare,
    Project,
    RunFiles,
    RushPlan,
    SavedView,
    Schedule,
    StoredSecret,
    User,
    Workspace,
)
from grid.notifications.channels import letter_to_send
from grid.notifications.letters import CONFIRM_ADDRESS
from grid.queue.launches import why_not_launch
from grid.runtime import Runtime
from tests.access.policy import check_policy, check_unstored
from tests.access.table import ROLES, Row
from tests.clusters.clustering import make_cluster
from tests.executions.executing import (
    make_environment,
    make_execution,
    make_project,
    make_workspace,
    pod_of,
    read_executions,
)
from tests.files.test_remotes import private_key
from tests.shell.live import cookie_of
from tests.support.builders import MOMENT, NAMESPACE, config_map, node
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill

NO_SUCH = "neverwas22"
REMOTE = "ssh://git@127.0.0.1:2222/churn.git"  # to which nothing goes: the address is not allowed
_FILE = "a.txt"


@dataclass(frozen=True)
class World:
    """What is in the database, and a project's files; `cookies` are the sessions of the people, who are all logged in."""

    people: Mapping[str, User]
    cookies: Mapping[str, str]
    executions: Mapping[str, Execution]
    workspaces: Mapping[str, Workspace]
    ports: Mapping[str, PortShare]
    entry: AuditEntry
    directory: Path  # of the projects' repositories
    commit: str  # the present one of the project's
    token: str  # of the link that confirms owner's new e-mail address

    @cached_property
    def _handler(self) -> ClientHandler:
        """For all clients: each would build all middleware again."""
        return ClientHandler(enforce_csrf_checks=False)

    def client(self, role: str) -> Client:
        client = Client()
        client.handler = self._handler
        if role in self.cookies:
            client.cookies[settings.SESSION_COOKIE_NAME] = self.cookies[role]
        return client

    def show(self, cluster: FakeCluster, runtime: Runtime) -> None:
        """Have the executions' pods run in the cluster, and the runtime know of all."""
        cluster.put(NODES, node("node-a"))
        status = "nodeGroups: [{name: default, health: {cloudProviderTarget: 1, minSize: 1, maxSize: 5}}]"
        cluster.put(CONFIG_MAPS, config_map("cluster-autoscaler-status", {"status": status}, namespace="kube-system"))
        for execution in self.executions.values():
            cluster.put(
                PODS, pod_of(execution.pk, name=execution.object_name, node="node-a", phase="Running", ready=True)
            )
        fill(runtime, cluster)
        read_executions(runtime)

    def path(self, row: Row) -> str:
        query = urlencode({"path": _FILE, "at": self.commit}) if row.route in _OF_FILES else ""
        return address(row.route, self._arguments(row)) + (f"?{query}" if query else "")

    def socket_path(self, row: Row) -> str:
        """The query of a page's websocket is the arguments of its address."""
        query = "&".join(f"{name}={value}" for name, value in self._arguments(row).items())
        return f"/live/{row.route}/?{query}"

    def body(self, row: Row) -> dict[str, Any]:
        """Such as only the person is a reason to refuse, where that takes few fields."""
        return _BODIES.get(row.route, {})

    def _arguments(self, row: Row) -> dict[str, Any]:
        if not row.target:
            return _WITHOUT_TARGET.get(row.route, {})
        execution = self.executions.get(row.target)
        if row.route == "join":
            return _link(self.people["invited"]) if row.target == "invited" else {"uidb64": "x", "token": "x"}
        owner = self.people["owner"]
        if row.route in ("email-link", "secret-delete"):
            link = {"id": owner.pk, "token": self.token if row.target == "asked-for" else "x"}
            return link if row.route == "email-link" else {"id": StoredSecret.objects.get(owner=owner).pk}
        if row.route == "project-secret-delete":
            return {"id": row.target, "secret": StoredSecret.objects.get(owner=None).pk}
        if row.target == "owners-view":
            return {"id": SavedView.objects.get(user=owner).pk}
        if row.route.startswith("person"):
            return {"id": self.people[row.target].pk}
        if row.route in ("node", "node-cordon", "node-drain", "node-mark", "node-use", "pool-limits"):
            return {"name": row.target}
        if row.route in ("pod", "pod-log", "pod-use"):
            return {"namespace": NAMESPACE, "name": execution.object_name if execution else NO_SUCH}
        if row.target == "no-such":
            return {"id": NO_SUCH}
        if row.route.endswith("-revert"):
            AuditEntry.objects.filter(pk=self.entry.pk).update(
                object_type=_MODELS[row.route.removesuffix("-revert")], object_id=row.target
            )
            return {"id": row.target, "entry_id": self.entry.pk}
        if row.target == "training" or row.route in _OF_REVISIONS:
            return {"id": row.target, **_number(row.route)}
        target = execution or self.workspaces.get(row.target) or self.ports.get(row.target)
        return {"id": target.pk if target else row.target}


def _number(route: str) -> dict[str, Any]:
    """The rest of an address of a job: a schedule, or of which run its next one takes the settings; or of an environment's revision."""
    if route in _OF_REVISIONS:
        return {"number": 1}
    if route in _OF_SCHEDULES:
        return {"number": Schedule.objects.get().pk}
    return {"number": 0} if route == "job-again" else {}


_OF_SCHEDULES = ("schedule-edit", "schedule-pause", "schedule-delete")
_OF_REVISIONS = ("environment-revision", "environment-revision-deprecate")
_OF_FILES = ("project-file", "project-file-delete", "project-file-move")
_MODELS = {
    "tier": "hardwaretier",
    "environment": "environment",
    "project": "project",
    "knowledge-entry": "knowledgeentry",
}
_LAUNCH = {"kind": "workspace", "project": "churn", "environment": "jupyterlab", "tier": "small", "token": "t1"}
_WITHOUT_TARGET = {"script-texts": {"language": "en", "version": "1"}}
_BODIES: dict[str, dict[str, Any]] = {
    "login": {"username": "owner", "password": "wrong"},
    "launch": _LAUNCH,
    "project-budget": {"amount": "100", "warning_percent": "80", "stop_percent": "100", "at_stop": "refuse"},
    "launch-check": _LAUNCH,
    "launch-objects": _LAUNCH,
    "execution-opening": {"opener": "a" * 64},
    "execution-resize": {"minimum": "1", "maximum": "2"},
    "workspace-resume": {"environment": "jupyterlab", "tier": "small"},
    "workspace-rename": {"title": "Another"},
    "configuration": {"base": "{}", "do": "save", UNNEEDED_SECONDS.key: "60"},
    "demonstration-size": {"pods": "100", "churn": "1"},
    "demonstration-failure": {"failure": "bad-image"},
    "announcement-new": {"text": "The registry is slow.", "severity": "info"},
    "rush": {
        "places": "2",
        "tier": "small",
        "environment": "jupyterlab",
        "zone": "UTC",
        "days": "mon",
        "ready": "09:00",
        "until": "12:00",
    },
    "view-save": {"table": "executions", "name": "Jobs", "query": "?kind=job"},
    "secrets": {"name": "KEY", "value": "kept-value"},
    "project-secrets": {"name": "KEY", "value": "kept-value"},
    "project-member": {"username": "viewer", "role": "contributor", "confirmed": "on"},
    "person-role": {"role": "auditor"},
    "login-unlock": {"scope": "name", "name": "owner", "address": ""},
}


def build(directory: Path) -> World:
    people = {name: User.objects.create_user(username=name) for name in ROLES if name not in ("nobody", "admin")}
    people["admin"] = User.objects.create_superuser(username="admin")
    for role in ("operator", "auditor"):
        people[role].groups.add(Group.objects.get_or_create(name=f"{role}s")[0])
    project = make_project(people["lead"], people["owner"], people["member"], people["former"])
    project.files = Project.Files.GIT
    project.save()
    executions = {
        "workspace": make_execution(people["owner"], project),
        "app": make_execution(people["owner"], project, kind="app"),
        "cluster": _cluster(people["owner"], project),
        "left-workspace": make_execution(people["former"], project),
        "left-cluster": _cluster(people["former"], project),
        "viewed-workspace": make_execution(people["viewer"], project),
        "viewed-cluster": _cluster(people["viewer"], project),
    }
    commit = _with_files(project, directory, by=people["lead"])
    executions |= {"run": _run(people["owner"], project, commit), "left-run": _run(people["former"], project, commit)}
    workspaces = {
        "notebook": make_workspace(people["owner"], project),
        "left-notebook": make_workspace(people["former"], project),
        "viewed-notebook": make_workspace(people["viewer"], project),
    }
    notebook = workspaces["notebook"]
    training = Job.objects.create(
        id="training", owner=people["owner"], project=project, environment=notebook.environment, tier=notebook.tier
    )
    Schedule.objects.create(job=training, cron="0 6 * * *", time_zone="UTC", next_at=timezone.now())
    project.members.remove(people["former"])
    project.members.add(people["viewer"], through_defaults={"role": "viewer"})
    for name in ("viewer", "former"):
        AppShare.objects.create(execution=executions["app"], user=people[name])
    ports = {
        "shared-port": PortShare.objects.create(execution=executions["workspace"], port=8501, name="Sales"),
        "left-port": PortShare.objects.create(execution=executions["left-workspace"], port=8501, name="Old"),
    }
    for port in ports.values():
        port.members.set([people["viewer"], people["former"]])
    people["invited"] = User.objects.create_user(username="invited")
    SavedView.objects.create(user=people["owner"], table="executions", name="Mine", query="?kind=job")
    for holder in ({"owner": people["owner"]}, {"project": project}):
        StoredSecret.objects.create(name="KEY", ciphertext="x", changed_by="owner", **holder)
    _of_the_platform(notebook)
    entry = AuditEntry.objects.create(actor_name="admin", action="changed", object_type="", object_id="", changes={})
    cookies = {name: cookie_of(user) for name, user in people.items()}
    token = _asked_for(people["owner"], cookies.values())
    return World(people, cookies, executions, workspaces, ports, entry, directory, commit, token)


def _of_the_platform(notebook: Workspace) -> None:
    """Store what belongs to no project: a rush plan, an alert with its silence, an announcement, and an entry of the knowledge."""
    machine = {"tier": notebook.tier, "environment": notebook.environment}
    RushPlan.objects.create(id="aaaa", places=2, ready="09:00", until="12:00", zone="UTC", **machine)
    now = timezone.now()
    Alert.objects.create(pk=1, fingerprint="f", name="Slow", labels={"alertname": "Slow"}, started_at=now, heard_at=now)
    AlertSilence.objects.create(pk=1, name="Slow", matchers={"alertname": "Slow"}, reason="Known.", until_at=now)
    Announcement.objects.create(id="upgrade", text="The cluster is upgraded tonight.")
    KnowledgeEntry.objects.create(id="licence", pattern="LIC", meaning="No licence.", cure="Wait.")


def _asked_for(owner: User, cookies: Iterable[str]) -> str:
    """Have the owner ask for another e-mail address, and each session hold the link that confirms it; return its token."""
    change = EmailChange.objects.create(user=owner, address="new@example.com", asked_at=timezone.now())
    payload = {"event": CONFIRM_ADDRESS, "to": change.address, "at": change.asked_at.isoformat()}
    _, letter, _ = letter_to_send(owner.pk, payload)
    token = str(letter["path"]).strip("/").rpartition("/")[2]
    for cookie in cookies:
        session = SessionStore(cookie)
        session["email_link"] = [owner.pk, token]
        session.save()
    return token


def _with_files(project: Project, directory: Path, *, by: User) -> str:
    """Give the project a file in Git, and a remote repository; return the commit."""
    remotes.put(project, by=by, url=REMOTE, branch=MAIN, username="", secret=private_key(), now=timezone.now())
    repository = Repositories(directory).of(project.pk)
    repository.create()
    return upload(repository, "", {_FILE: b"1\n"}, author=by.get_username())


def _run(owner: User, project: Project, commit: str) -> Execution:
    """A run of a job, which has a record of what it ran with, and results."""
    environment = Environment.objects.filter(pk="script").first()
    environment = environment or make_environment("script", name="Script", kind="job", port=None)
    tier = HardwareTier.objects.get(pk="small")
    submit(
        LaunchRequest(owner=owner, project=project, environment=environment, tier=tier, kind="job"),
        gate=why_not_launch,
        now=timezone.now(),
    )
    execution = Execution.objects.get(owner=owner, run__isnull=False)
    RunFiles.objects.create(execution=execution, results=commit, results_files=1)
    return execution


def _link(user: User) -> dict[str, str]:
    return {"uidb64": urlsafe_base64_encode(force_bytes(user.pk)), "token": default_token_generator.make_token(user)}


def _cluster(owner: User, project: Project) -> Execution:
    return make_cluster(owner, project, slots_reserved_at=MOMENT)


def asked(client: Client, method: str, path: str, body: Mapping[str, Any]) -> str:
    """The answer as the table says it, which has our policy for scripts and is stored by no cache; whatever it changed is undone."""
    send: Any = {"GET": client.get, "POST": client.post, "PUT": client.put, "DELETE": client.delete}[method]
    with transaction.atomic():
        answer = send(path, body) if method in ("GET", "POST") else send(path)
        if answer.streaming:
            async_to_sync(_read)(answer)
        transaction.set_rollback(True)
    if not path.startswith("/admin/"):  # Django's pages have a policy of their own
        check_policy(answer)
    check_unstored(answer, path)
    location = answer.headers.get("Location", "")
    return "login" if location.startswith(("/login/", "/admin/login/")) else str(answer.status_code)


async def _read(answer: Any) -> None:
    """Read all of it: what makes a stream may be a program, which ends with it."""
    async for _ in answer:
        pass


def routes() -> Iterator[str]:
    """Every address of the web process, named as in the table."""
    yield from _routes(get_resolver().url_patterns, "", "")


def _routes(patterns: list[URLPattern | URLResolver], prefix: str, namespace: str) -> Iterator[str]:
    for pattern in patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            inner = f"{pattern.namespace}:" if pattern.namespace else namespace
            yield from _routes(pattern.url_patterns, path, inner)
        elif pattern.name or not namespace:  # without both it is the catch-all of Django's admin, which shows nothing
            yield f"{namespace}{pattern.name}" if pattern.name else path


def address(route: str, arguments: Mapping[str, Any]) -> str:
    return f"/{route}" if "/" in route else reverse(route, kwargs=dict(arguments))
