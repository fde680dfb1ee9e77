"""Each light of the platform in each state, in words; when an incident begins and ends; periodic tasks; the page of API checks."""

from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client

from dashboard.platformhealth.page import PlatformHealthPage
from dashboard.platformhealth.records import framework_lines
from dashboard.platformhealth.viewmodels.api_checks import api_check_page
from dashboard.platformhealth.viewmodels.platform_health import HealthPart, all_parts, headline
from dashboard.platformhealth.viewmodels.platform_page import light_parts, task_lines
from grid.database.periodic import TaskRecord
from grid.kube.trouble import ClusterTrouble
from grid.models import ApiCheckRun, AuditEntry, Environment
from grid.platformhealth import lights
from grid.platformhealth.facts import (
    AutoscalerReport,
    FailedPull,
    Heartbeat,
    Light,
    ServerAnswers,
    Unread,
    WarningEvent,
    Workload,
)
from grid.platformhealth.incidents import Streak, judge
from grid.platformhealth.lights import registry_host
from grid.platformhealth.taskhealth import LATE_SECONDS, light, task_state
from grid.platformhealth.versions import USED, VersionLine, version_lines
from grid.runtime import Runtime
from tests.conftest import People, client_of
from tests.shell.live import connected
from tests.support.builders import MOMENT
from tests.support.golden import assert_golden
from tests.support.platform import BAD, WELL, store, store_api_checks, store_old_environment, tasks_at

NOW = datetime(2026, 3, 4, 9, tzinfo=UTC)
FORBIDDEN = Unread("the controller may not read it. Add the rule: list deployments.apps in kube-system")
URL = "/platform-health/"
CHECKS_URL = "/platform-health/api-checks/"
RUN = f"{CHECKS_URL}run/"


def workload(name: str, ready: int, wanted: int = 2) -> Workload:
    return Workload("Deployment", "kube-system", name, ready, wanted)


def trouble(reason: str, message: str, about: str = "job-1") -> WarningEvent:
    return WarningEvent(reason, about, message)


REFUSED = "dial tcp 10.0.0.9:443: connect: connection refused"


def pull(message: str, number: int = 1, *, person: str = "ada", was_pulled: bool = False) -> FailedPull:
    return FailedPull(f"reg.example.com/a:{number}", message, f"job-{number}", person, was_pulled)


BEAT = Heartbeat(0.0, "cp-1_abc")
STATES: dict[str, Light] = {
    "api server: well": lights.api_server(ServerAnswers(0.02, 11, (), ())),
    "api server: well, its checks unread": lights.api_server(ServerAnswers(0.02, 11)),
    "api server: slow": lights.api_server(ServerAnswers(2.5, 11, (), ())),
    "api server: fails": lights.api_server(ServerAnswers(2.5, 11, ("Connection refused",), None)),
    "api server: its checks fail": lights.api_server(ServerAnswers(0.1, 11, (), ("etcd",))),
    "dns: well": lights.dns([workload("coredns", 2)], ""),
    "dns: half": lights.dns([workload("coredns", 1)], None),
    "dns: gone": lights.dns([workload("coredns", 0)], None),
    "dns: lookup fails": lights.dns([workload("coredns", 2)], "Name or service not known"),
    "dns: no server seen": lights.dns([workload("metrics-server", 1)], None),
    "dns: only a lookup": lights.dns([], ""),
    "dns: no right": lights.dns(FORBIDDEN, ""),
    "scheduler: well": lights.scheduler(BEAT),
    "scheduler: seen once": lights.scheduler(Heartbeat(None)),
    "scheduler: silent": lights.scheduler(Heartbeat(61.0)),
    "scheduler: no lease": lights.scheduler(None),
    "scheduler: no right": lights.scheduler(FORBIDDEN),
    "controller manager: silent": lights.controller_manager(Heartbeat(61.0)),
    "autoscaler: well": lights.autoscaler(AutoscalerReport("Healthy", BEAT)),
    "autoscaler: ill": lights.autoscaler(AutoscalerReport("Unhealthy", BEAT)),
    "autoscaler: silent": lights.autoscaler(AutoscalerReport("Healthy", Heartbeat(600.0))),
    "autoscaler: unreadable": lights.autoscaler(AutoscalerReport("", BEAT)),
    "autoscaler: none": lights.autoscaler(None),
    "autoscaler: no right": lights.autoscaler(FORBIDDEN),
    "metrics: well": lights.metrics(""),
    "metrics: away": lights.metrics("The server is currently unable to handle the request"),
    "metrics: none": lights.metrics(None),
    "metrics: no right": lights.metrics(FORBIDDEN),
    "registry: well": lights.registry([]),
    "registry: one made-up image": lights.registry([pull("manifest unknown"), pull("insufficient_scope: denied", 2)]),
    "registry: one image of one person": lights.registry([pull(REFUSED)]),
    "registry: one person's made-up host": lights.registry([pull("no such host"), pull("no such host", 2)]),
    "registry: the node's disk is full": lights.registry([pull("no space left on device", was_pulled=True)]),
    "registry: several images": lights.registry([pull(REFUSED), pull(REFUSED, 2)]),
    "registry: several people": lights.registry([pull("no such host"), pull("no such host", 2, person="bob")]),
    "registry: an image that was pulled before": lights.registry([pull("toomanyrequests: rate", was_pulled=True)]),
    "registry: nobody knows why": lights.registry([pull("odd"), pull("odd", 2)]),
    "storage: well": lights.storage([trouble("FailedMount", 'secret "x" not found')], frozenset()),
    "storage: a claim that was served since": lights.storage(
        [trouble("ProvisioningFailed", "quota", "home")], frozenset()
    ),
    "storage: no volume": lights.storage([trouble("ProvisioningFailed", "quota", "home")], frozenset({"home"})),
    "storage: not attached": lights.storage([trouble("FailedAttachVolume", "timed out")], frozenset()),
    "ingress: not used": lights.ingress(False, ()),
    "ingress: well": lights.ingress(True, [workload("ingress-nginx-controller", 2)]),
    "ingress: away": lights.ingress(True, [workload("ingress-nginx-controller", 0)]),
    "ingress: not seen": lights.ingress(True, ()),
    "ingress: no right": lights.ingress(True, FORBIDDEN),
    "proxies: well": lights.proxies([workload("proxy", 2)], None),
    "proxies: away": lights.proxies([workload("proxy", 0)], None),
    "proxies: a port, well": lights.proxies([], ""),
    "proxies: a port, away": lights.proxies([], "Connection refused"),
    "proxies: not seen": lights.proxies([], None),
    "proxies: no right": lights.proxies(FORBIDDEN, None),
    "database: well": lights.database(0.004),
    "database: slow": lights.database(1.5),
}


def test_lights_word_each_state_and_next_step() -> None:
    words = "\n".join(f"{state}\n  {light_of.severity} {light_of.sentence}" for state, light_of in STATES.items())
    assert_golden("platform-lights", words, ending="txt")


@pytest.mark.parametrize(
    ("image", "host"),
    [
        ("python:3.11", "docker.io"),
        ("reg.example.com/team/a:1", "reg.example.com"),
        ("localhost:5000/a", "localhost:5000"),
    ],
)
def test_image_host_is_parsed_like_container_runtimes_do(image: str, host: str) -> None:
    assert registry_host(image) == host


def light_of(severity: str) -> Light:
    return Light("dns", "DNS", severity, "It is so.")  # type: ignore[arg-type]


def story(*severities: str) -> list[str]:
    """Judge one look after another, half a minute apart; + for an incident that begins, - for one that ends, with its minute."""
    streaks: dict[str, Streak] = {}
    unended: set[str] = set()
    turns = []
    for number, severity in enumerate(severities):
        judged = judge([light_of(severity)], streaks, unended, NOW + number * timedelta(seconds=30))
        streaks = judged.streaks
        unended = (unended | {turn.light.key for turn in judged.begun}) - {turn.light.key for turn in judged.ended}
        turns += [f"+{turn.at - NOW}" for turn in judged.begun] + [f"-{turn.at - NOW}" for turn in judged.ended]
    return turns


def test_incident_spans_from_first_bad_to_first_good_check() -> None:
    assert story("ok", "problem", "problem", "problem", "ok", "ok") == ["+0:00:30", "-0:02:00"]


def test_single_bad_or_good_check_changes_no_incident() -> None:
    assert story("ok", "problem", "ok", "problem", "ok") == []
    assert story("problem", "problem", "ok", "problem", "ok") == ["+0:00:00"]


def test_unknown_state_neither_begins_nor_ends_incident() -> None:
    assert story("problem", "wait", "wait", "problem", "wait", "wait", "ok", "ok") == ["+0:00:00", "-0:03:00"]


Served = dict[str, frozenset[str] | None]
EVERYTHING: Served = {
    version: frozenset(resource for used in USED if used.group_version == version for resource in used.resources)
    for version in {used.group_version for used in USED}
}


def words_of(*lines: VersionLine) -> str:
    return "\n".join(f"{line.severity} {line.subject}: {line.sentence}" for line in lines if line.severity != "ok")


NO_LONGER = ("autoscaling/v2", "policy/v1", "metrics.k8s.io/v1beta1")
SERVERS: dict[str, tuple[str, Served]] = {
    "new": ("v1.36.2", EVERYTHING),
    "old": ("v1.20.4+k3s1", EVERYTHING | dict.fromkeys(NO_LONGER)),
    "strange": ("OpenThing 4", {}),
    "silent": ("", EVERYTHING),
}


@pytest.mark.parametrize("case", SERVERS)
def test_versions_say_what_the_cluster_lacks(case: str) -> None:
    server, served = SERVERS[case]
    assert_golden(f"platform-versions-{case}", words_of(*version_lines(server, "37.0.2", served)), ending="txt")


def test_worst_tasks_stand_first_with_their_reasons() -> None:
    words = [
        f"{line.name}: {line.status.severity} {line.status.word}. {line.sentence} {line.every}, {line.took}, {line.failures}"
        for line in task_lines(tasks_at(MOMENT), MOMENT)
    ]
    assert_golden("platform-tasks", "\n".join(words), ending="txt")


@pytest.mark.parametrize(("late", "severity"), [(0.0, "ok"), (61.0, "wait"), (LATE_SECONDS, "problem")])
def test_overdue_task_turns_amber_then_red(late: float, severity: str) -> None:
    due_at = MOMENT - timedelta(seconds=late)
    task = TaskRecord("budgets", 60.0, started_at=MOMENT - timedelta(hours=1), succeeded_at=MOMENT, due_at=due_at)
    assert task_state(task, MOMENT).severity == severity


def test_light_is_red_for_lasting_trouble_only() -> None:
    well, _failing, failing_now, _hanging, _new = tasks_at(MOMENT)
    red = light(tasks_at(MOMENT), MOMENT)
    assert red.severity == "problem" and "silences" in red.sentence and "clean-up" in red.sentence
    amber = light([well, failing_now], MOMENT)
    assert (amber.severity, amber.sentence) == ("ok", "Fails or is slow now, and is tried again: node tasks.")
    assert light([well], MOMENT).sentence == "1 task runs on time."


def test_page_shows_lights_incidents_and_workloads_with_pods(admin: Client, runtime: Runtime) -> None:
    store(BAD)
    page = admin.get(URL).content.decode()
    assert "Trouble with:" in page and "No pod of &lt;coredns&gt; is ready." in page
    assert "Ongoing" in page and "Not served: x." in page
    assert 'href="/pods/kube-system/dns-2/"' in page and 'href="/pods/kube-system/dns-2/log/"' in page
    assert "not ready: CrashLoopBackOff" in page and "Namespace ingress-nginx is not shown" in page
    assert page.index("coredns") < page.index("metrics-server")  # the worst first


def test_frameworks_show_problems_first(admin: Client, runtime: Runtime, django_assert_max_num_queries: Any) -> None:
    for number in range(3):
        image = f"rayproject/ray:2.60.0-py3{10 + number}"
        Environment.objects.create(id=f"ray-{number}", name=f"Ray {number}", image=image, frameworks={"ray": "2.60.0"})
    store_old_environment()
    with django_assert_max_num_queries(5):
        lines = framework_lines(MOMENT)
    with django_assert_max_num_queries(1):
        assert framework_lines(MOMENT) == lines
    assert [line.severity for line in lines] == ["problem", "problem", "ok", "ok", "ok"]
    page = admin.get(URL).content.decode()
    assert "Old Ray: Ray 2.60.0" in page and "its requirements install ray 2.40.0" in page
    page = admin.get("/environments/old-ray/").content.decode()
    assert "It needs Python 3.10 or later, and the environment has Python 3.9." in page
    assert "Framework versions" not in admin.get("/environments/jupyterlab/").content.decode()


def test_old_lights_are_unknown_and_name_the_last_state(admin: Client, runtime: Runtime) -> None:
    store(BAD, minutes_ago=10)
    page = admin.get(URL).content.decode()
    assert "Not known since the controller looked last. Then: No pod of &lt;coredns&gt; is ready." in page


@pytest.mark.parametrize("trouble", ClusterTrouble)
def test_page_and_overview_tell_the_kind_of_trouble(admin: Client, runtime: Runtime, trouble: ClusterTrouble) -> None:
    store(WELL)
    runtime.nodes.mark_failed("It is so.", runtime.monotonic() - 5, trouble=trouble, at=runtime.monotonic() - 5)
    for url in (URL, "/overview/"):
        page = unescape(admin.get(url).content.decode())
        assert f"{trouble.value}. It is so." in page, "of the API server"
        assert page.count(trouble.value) >= 2, "in the banner, too"
        assert "Trouble with" in page


def test_own_observation_outranks_unknown_state() -> None:
    own = [HealthPart("Database", "ok")]
    old = light_parts([WELL], MOMENT, MOMENT + timedelta(minutes=10))
    assert [part.severity for part in all_parts(own, old)] == ["ok"]
    slow = light_parts([Light("database", "Database", "problem", "Slow.")], MOMENT, MOMENT)
    assert [part.sentence for part in all_parts(own, slow)] == ["Slow."]
    assert headline(all_parts(own, ())).word == "Platform healthy"


@pytest.mark.django_db(transaction=True)
async def test_page_follows_the_controller(people: People, runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PlatformHealthPage, "tick_seconds", 0.05)
    async with connected("/live/platform-health/", people.operator) as page:
        assert "no controller has looked yet" in await page.message()
        await sync_to_async(store)(BAD)
        assert "No pod of &lt;coredns&gt; is ready." in await page.message_about("platform-lights")


def test_operators_see_results_and_cannot_run_them(people: People, runtime: Runtime) -> None:
    store_api_checks(needs_shared=True, trouble="No.")
    client = client_of(people.operator)
    assert f'href="{RUN}' not in client.get(CHECKS_URL).content.decode()
    assert client.post(RUN).status_code == 403


def test_an_admin_reads_what_is_created_and_runs_them(admin: Client, runtime: Runtime) -> None:
    page = admin.get(CHECKS_URL).content.decode()
    assert "No check has been run." in page and f'href="{RUN}"' in page
    question = admin.get(RUN).content.decode()
    assert "creates a namespace with a name of its own" in question and "all of it is removed" in question
    assert "in compute-grid, the namespace of executions" in admin.get(f"{RUN}?where=shared").content.decode()
    page = admin.post(RUN, follow=True).content.decode()
    assert (
        "Waits for the controller" in page
        and "begins within seconds while a controller runs" in page
        and 'hx-trigger="every 2s"' in page
    )
    assert AuditEntry.objects.filter(object_type="apicheckrun").count() == 1
    assert "has not ended yet" in admin.post(RUN, follow=True).content.decode()
    run = ApiCheckRun.objects.get()
    assert (run.is_shared, run.ended_at) == (False, None)


def test_results_show_failures_first_with_server_words(admin: Client, runtime: Runtime) -> None:
    store_api_checks()
    page = admin.get(CHECKS_URL).content.decode()
    assert "1 check passed, 1 failed, 1 not run because a right is missing" in page
    assert "pods is &lt;forbidden&gt;" in page and "create jobs.batch" in page and "0.04 s" in page
    assert page.index("Watch pods") < page.index("Create, change and page")
    assert "hx-trigger" not in page


@pytest.mark.parametrize(
    ("fields", "severity", "word"),
    [
        ({"started_at": None, "ended_at": None, "results": []}, "wait", "Waits for the controller"),
        ({"ended_at": None}, "wait", "Running: 3 checks so far"),
        ({"trouble": "The controller may not.", "results": []}, "problem", "Not run"),
    ],
)
def test_its_state_is_told(db: None, fields: dict[str, Any], severity: str, word: str) -> None:
    page = api_check_page(store_api_checks(**fields))
    assert (page.status.severity, page.status.word) == (severity, word)


def test_admin_without_right_is_offered_the_executions_namespace(admin: Client, runtime: Runtime) -> None:
    store_api_checks(needs_shared=True, trouble="The controller may not create namespaces: no.", results=[])
    page = admin.get(CHECKS_URL).content.decode()
    assert f'href="{RUN}?where=shared"' in page and "The controller may not create namespaces: no." in page
