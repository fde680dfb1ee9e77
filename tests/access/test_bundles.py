"""Support bundles, opened file by file for each role: no secret is in any of them, and nothing that its page refuses to the role."""

import io
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from grid.kube.redaction import HIDDEN
from grid.models.dataplane import LOCAL
from grid.runtime import Runtime, new_runtime
from tests.access.planted import Planted, plant, set_secrets
from tests.access.table import ROLES
from tests.access.world import build
from tests.support.builders import NAMESPACE
from tests.support.cluster import FakeCluster
from tests.support.runtime import using_runtime

PLATFORM = "/overview/support/"
# By the beginning of a file's name: the page that shows the same.
PLATFORM_PAGES = {
    "health.json": "/platform-health/",
    "platform.txt": "/platform-health/",
    "pools.csv": "/infrastructure/",
    "events.csv": "/infrastructure/",
    "nodes/node-a.txt": "/nodes/node-a/?tab=describe",
    "queue.csv": "/queue/",
    "failures.csv": "/executions/?show=ended",
    "audit.csv": "/audit-log/",
    "configuration.txt": "/configuration/",
    "checks.txt": "/configuration/",
}
EXECUTION_PAGES = {
    "history": "/executions/{id}/lifecycle/",
    "metrics.csv": "/executions/{id}/metrics/",
    "workers.csv": "/executions/{id}/",
    "log.txt": "/executions/{id}/log/",
    "events.csv": "/executions/{id}/?tab=events",
    "pods/": "/pods/{pod}/?tab=yaml",
    "objects/": "/executions/{id}/",
}


@pytest.fixture(scope="module")
def built(module_transaction: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    with pytest.MonkeyPatch.context() as patch:
        repositories = tmp_path_factory.mktemp("repositories")
        set_secrets(patch, repositories)
        launching = FakeCluster()
        with using_runtime(new_runtime({LOCAL: launching})):
            planted_files = plant(build(repositories))
        yield planted_files


@pytest.fixture
def planted(db: None, built: Planted, cluster: FakeCluster, runtime: Runtime) -> Planted:
    built.show(cluster, runtime)
    return built


def bundles_of(planted: Planted, role: str) -> dict[str, dict[str, str]]:
    """The files of each bundle that the role gets, by the address of its page."""
    others = (planted.world.executions[name] for name in ("cluster", "left-workspace", "viewed-workspace"))
    executions = (planted.workspace, planted.run, planted.failed, *others)
    answers = {
        path: planted.world.client(role).post(path)
        for path in (PLATFORM, *(f"/executions/{execution.pk}/support/" for execution in executions))
    }
    return {path: _files(answer.content) for path, answer in answers.items() if answer.status_code == 200}


def _files(content: bytes) -> dict[str, str]:
    with zipfile.ZipFile(io.BytesIO(content)) as opened:
        return {name: opened.read(name).decode() for name in opened.namelist()}


def test_each_secret_is_kept_where_it_belongs(planted: Planted) -> None:
    assert [kind for kind, secret in planted.secrets.items() if secret not in planted.places[kind]] == []


def test_the_audit_log_and_its_file_have_no_secret(planted: Planted) -> None:
    client = planted.world.client("auditor")
    exported = async_to_sync(_streamed)(client.get("/audit-log/export/"))
    for text in (client.get("/audit-log/").content.decode(), exported):
        assert "SALT (new value)" in text
        assert planted.found_in(text) == []


async def _streamed(answer: Any) -> str:
    return b"".join([piece async for piece in answer.streaming_content]).decode()


def test_bundles_of_admin_have_all_sections_worded_like_pages(planted: Planted) -> None:
    bundles = bundles_of(planted, "admin")
    assert len(bundles) == 7
    platform, run = bundles[PLATFORM], bundles[f"/executions/{planted.run.pk}/support/"]
    assert set(PLATFORM_PAGES) <= set(platform)
    assert "SALT (old value)" in platform["audit.csv"] and "SALT (new value)" in platform["audit.csv"]
    assert f"Its program ended with 1: {HIDDEN} {HIDDEN}" in platform["failures.csv"]
    assert f'"NOTE": "{HIDDEN}"' in run["record.json"] and f'"RATE": "{HIDDEN}"' in run["record.json"]
    pod = f"pods/{planted.run.object_name}"
    assert "SALT" in run[f"{pod}/pod.yaml"] and "NOTE" in run[f"{pod}/describe.txt"]
    for log in (f"{pod}/run.log", f"{pod}/run.previous.log"):
        assert "it begins" in run[log] and f"it got {HIDDEN}" in run[log]
    assert "it begins" in bundles[f"/executions/{planted.failed.pk}/support/"]["log.txt"]


@pytest.mark.parametrize("role", ROLES)
def test_no_bundle_has_a_secret_or_what_its_page_refuses(role: str, planted: Planted) -> None:
    texts = [(path, name, text) for path, files in bundles_of(planted, role).items() for name, text in files.items()]
    assert [(path, name, kinds) for path, name, text in texts if (kinds := planted.found_in(text))] == []
    pages = {page for path, name, _text in texts if (page := _page_of(path, name)) is not None}
    client = planted.world.client(role)
    assert {page: client.get(page).status_code for page in pages} == dict.fromkeys(pages, 200)


def _page_of(path: str, name: str) -> str | None:
    """The page that shows the same as a file of the bundle at the path; None when none does."""
    pages = PLATFORM_PAGES if path == PLATFORM else EXECUTION_PAGES
    page = next((page for start, page in pages.items() if name.startswith(start)), None)
    return page and page.format(id=path.split("/")[2], pod=name.rpartition("/")[0].replace("pods/", f"{NAMESPACE}/"))


def test_bundle_lists_what_operator_lacks_and_who_adds_it(planted: Planted) -> None:
    page = planted.world.client("operator").get(PLATFORM).content.decode()
    files = bundles_of(planted, "operator")[PLATFORM]
    assert not {"audit.csv", "configuration.txt", "checks.txt"} & set(files)
    for text in (files["CONTENTS.txt"].partition("Missing:")[2], page):
        assert "Left out: only admins and auditors can see the audit log. Ask an admin to make the bundle" in text
        assert "Left out: only admins can see the configuration. Ask an admin to make the bundle." in text
    assert "Left out" not in bundles_of(planted, "admin")[PLATFORM]["CONTENTS.txt"]
