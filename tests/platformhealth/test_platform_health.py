"""The page of the platform's health: who sees it, and what it says while the controller works, has stopped, or never ran."""

from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client

from dashboard.platformhealth.page import PlatformHealthPage
from dashboard.platformhealth.records import framework_lines
from dashboard.platformhealth.viewmodels.platform_health import HealthPart, all_parts, headline
from dashboard.platformhealth.viewmodels.platform_page import light_parts
from grid.kube.trouble import ClusterTrouble
from grid.models import Environment
from grid.platformhealth.facts import Light
from grid.runtime import Runtime
from tests.conftest import People
from tests.shell.live import connected
from tests.support.builders import MOMENT
from tests.support.platform import BAD, WELL, store, store_old_environment

URL = "/platform-health/"


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
