"""The workspace's way on a real Kubernetes API server: our kubelets joined to it, web and controller with their own rights only.

Needs a cluster of its own without nodes: REAL_KUBECONFIG names the kubeconfig of its administrator. With REAL_API_DOWN and
REAL_API_UP, shell commands that end and start its API server, the recovery from that is seen too. REAL_DATABASE_URL names an
empty database to be used in place of SQLite.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from playwright.sync_api import Browser, Page, expect

from tests.end_to_end.people import (
    PULL,
    SOON,
    forbid_reload,
    launch,
    log_in,
    open_lab,
    run_cell,
    stop,
    was_not_reloaded,
)
from tests.end_to_end.real import API_DOWN, API_UP, DEPLOY, RealGrid, cluster_of_its_own, needs_real_cluster, probe
from tests.support.ports import free_ports
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(900), needs_real_cluster]


@pytest.fixture(scope="module")
def real_grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealGrid]:
    with cluster_of_its_own(tmp_path_factory.mktemp("real")) as grid:
        grid.prepare()
        grid.start_nodes()
        grid.start_controller()
        grid.start_web()
        grid.start_proxy()
        yield grid


# Questions of `kubectl auth can-i`, of each account of deploy/access.yaml.
MAY = {
    "web": (
        *("watch nodes", "watch pods -A", "list events -A", "get pods --subresource=log -n compute-grid"),
        "list poddisruptionbudgets.policy -A",
    ),
    "proxy": ("list pods -n compute-grid", "watch pods -n compute-grid"),
    "controller": (
        *("list nodes", "list pods -A", "list persistentvolumes", "patch nodes", "create pods --subresource=eviction -A"),
        *(f"{right} -n compute-grid" for right in (
            *("create pods", "patch pods", "delete configmaps", "create secrets", "update lease/compute-grid-controller"),
            *("create deployments.apps", "patch deployments.apps", "delete deployments.apps", "delete replicasets.apps"),
            *("create services", "list services", "create networkpolicies.networking.k8s.io", "list persistentvolumeclaims"),
            *("update networkpolicies.networking.k8s.io/executions", "update configmaps --subresource=finalizers"),
            *("create poddisruptionbudgets.policy", "list poddisruptionbudgets.policy"),
            *("watch horizontalpodautoscalers.autoscaling", "patch horizontalpodautoscalers.autoscaling"),
        )),
    ),
}  # fmt: skip
MAY_NOT = {
    "web": (
        *("create pods -n compute-grid", "delete pods -n compute-grid", "create pods --subresource=exec -n compute-grid"),
        *("get secrets -n compute-grid", "get secrets -n compute-grid-system", "list configmaps -n kube-system"),
        *("patch nodes", "delete nodes", "create pods --subresource=eviction -A", "update leases -n compute-grid"),
    ),
    "proxy": ("list pods -A", "get secrets -n compute-grid", "create pods -n compute-grid", "list nodes"),
    "controller": (
        *("create pods -n default", "watch pods -A", "get secrets -n kube-system", "watch nodes", "create namespaces"),
        *("get secrets -n compute-grid-system", "update lease/another -n compute-grid", "delete services -n compute-grid"),
        *("create rolebindings -n compute-grid", "create pods --subresource=exec -n compute-grid"),
        *("create deployments.apps -n default", "update pods -n compute-grid", "patch services -n compute-grid"),
        *("update networkpolicies.networking.k8s.io/shut -n compute-grid", "list endpointslices -n default"),
        *("delete pods -n default", "delete nodes", "update nodes", "patch nodes --subresource=status"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("account", MAY)
def test_each_account_may_do_its_own_and_nothing_else(real_grid: RealGrid, account: str) -> None:
    assert [question for question in MAY[account] if not real_grid.may(account, question)] == []
    assert [question for question in MAY_NOT[account] if real_grid.may(account, question)] == []


@pytest.mark.parametrize("name", ["network", "compute-grid", "migrate", "ingress"])
def test_the_api_server_takes_the_manifests(real_grid: RealGrid, name: str) -> None:
    answer = real_grid.try_kubectl("apply", "--dry-run=server", "-f", str(DEPLOY / f"{name}.yaml"))
    assert answer.returncode == 0, answer.stderr
    # Not "unchanged": each is new to this cluster. And no warning about a field that the server does not know.
    assert all(line.endswith("created (server dry run)") for line in answer.stdout.splitlines()), answer.stdout
    assert answer.stderr == ""


@pytest.mark.parametrize("name", ["web", "proxy"])
def test_a_process_answers_the_manifests_probes(real_grid: RealGrid, name: str) -> None:
    """With the settings, arguments and probes of deploy/compute-grid.yaml, beside the one that runs."""
    objects = {
        (manifest["kind"], manifest["metadata"]["name"]): manifest
        for manifest in yaml.safe_load_all((DEPLOY / "compute-grid.yaml").read_text())
    }
    pod = objects["Deployment", name]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    real_grid.manage(*pod["initContainers"][0]["args"])  # the tables are there, so it succeeds
    port, chosen = free_ports(1), container["ports"][0]["containerPort"]
    arguments = [f"--port={port}" if argument == f"--port={chosen}" else argument for argument in container["args"]]
    assert arguments != container["args"]
    settings = real_grid.settings(real_grid.write_kubeconfig(name)) | objects["ConfigMap", "settings"]["data"]
    real_grid.start(f"second-{name}", arguments, settings)
    try:
        for probed in ("livenessProbe", "readinessProbe"):
            request = container[probed]["httpGet"]
            headers = {header["name"]: header["value"] for header in request.get("httpHeaders", ())}
            url = f"http://127.0.0.1:{port}{request['path']}"
            wait_until(lambda url=url, headers=headers: probe(url, headers)[0] == 200, 60, probed)  # type: ignore[misc]
        if name == "web":
            assert probe(f"http://127.0.0.1:{port}/login/")[0] == 400, "only under its own name"
            came_by_https = {"Host": "grid.example.com", "X-Forwarded-Proto": "https"}
            assert probe(f"http://127.0.0.1:{port}/login/", came_by_https)[0] == 200
    finally:
        real_grid.stop(f"second-{name}")


def test_an_operator_drains_a_node_around_no_budget(real_grid: RealGrid, browser: Browser) -> None:
    """With the rights of deploy/access.yaml alone: a pod whose budget allows no eviction stays, until it is cancelled by uncordoning."""
    name = real_grid.ready_nodes()[0]
    page = log_in(browser, real_grid, "operator").new_page()
    run_budgeted_pod(real_grid, name, page)
    page.goto(f"/nodes/{name}/drain/")
    expect(page.locator("table").first).to_contain_text("The PodDisruptionBudget kept allows no eviction now")
    page.get_by_label("Reason").fill("New kernel")
    page.get_by_role("button", name="Drain").click()
    work = page.locator("#node-work")
    expect(work).to_contain_text("Cordoned", timeout=SOON)
    expect(work).to_contain_text("A PodDisruptionBudget does not allow it now", timeout=SOON)
    real_grid.kubectl("delete", "pdb", "kept", "-n", "default")
    expect(work).to_contain_text("Drained", timeout=120_000)
    assert real_grid.kubectl("get", "pod", "kept", "-n", "default", "--ignore-not-found") == ""
    page.get_by_role("link", name="Uncordon").click()
    page.get_by_role("button", name="Uncordon").click()
    expect(work).not_to_contain_text("Cordoned", timeout=SOON)
    real_grid.nothing_was_forbidden()


def test_operator_taints_node_without_bypassing_budgets(real_grid: RealGrid, browser: Browser) -> None:
    """Each after its preview, which changes nothing; what would evict a pod that a budget counts is refused until there is no budget."""
    name = real_grid.ready_nodes()[0]
    page = log_in(browser, real_grid, "operator").new_page()
    run_budgeted_pod(real_grid, name, page)

    def preview(what: str) -> None:
        page.goto(f"/nodes/{name}/mark/?do={what}")

    def carry_out(button: str) -> None:
        page.get_by_label("Reason").fill("For team a")
        page.get_by_role("button", name=button).click()
        expect(page.locator("#node-work")).to_contain_text("Done for operator", timeout=SOON)

    def taints() -> set[tuple[str, str]]:
        spec = json.loads(real_grid.kubectl("get", "node", name, "-o", "json"))["spec"]
        return {(taint["key"], taint["effect"]) for taint in spec.get("taints", ())}

    preview("taint&key=example.com/team&value=a&effect=NoSchedule")
    expect(page.get_by_role("main")).to_contain_text("Running executions keep running.")
    assert taints() == set()
    carry_out("Add taint")
    assert taints() == {("example.com/team", "NoSchedule")}

    preview("taint&key=example.com/team&value=a&effect=NoExecute")
    expect(page.get_by_role("alert")).to_contain_text("evicts pods without asking their disruption budgets (kept)")
    expect(page.get_by_role("button", name="Add taint")).to_have_count(0)
    assert real_grid.kubectl("get", "pod", "kept", "-n", "default", "-o", "jsonpath={.status.phase}") == "Running"
    real_grid.kubectl("delete", "pdb", "kept", "-n", "default")
    preview("taint&key=example.com/team&value=a&effect=NoExecute")
    expect(page.locator("table")).to_contain_text("kept")
    carry_out("Add taint")
    real_grid.kubectl("wait", "pod", "kept", "-n", "default", "--for=delete", "--timeout=60s")
    for effect in ("NoExecute", "NoSchedule"):
        preview(f"untaint&key=example.com/team&effect={effect}")
        carry_out("Remove taint")
    assert taints() == set()

    real_grid.nothing_was_forbidden()


def run_budgeted_pod(grid: RealGrid, node: str, page: Page) -> None:
    """Until the cluster counts it and the web process knows of it, as its node's page shows: what a drain does is asked of both."""
    manifests = grid.folder / "budgeted.yaml"
    manifests.write_text(yaml.safe_dump_all(budgeted_pod(node)))
    grid.kubectl("apply", "-f", str(manifests))
    # A pod that is not ready would be evicted.
    allowed = "jsonpath={.status.disruptionsAllowed}/{.status.currentHealthy}"
    counted = ("get", "pdb", "kept", "-n", "default", "-o", allowed)
    wait_until(lambda: grid.kubectl(*counted) == "0/1", 120, "a healthy pod that the budget counts")
    page.goto(f"/nodes/{node}/")
    expect(page.locator("#pods")).to_contain_text("kept", timeout=SOON)


def budgeted_pod(node: str) -> list[dict[str, Any]]:
    meta = {"name": "kept", "namespace": "default", "labels": {"app": "kept"}}
    container = {"name": "run", "image": "compute-grid/test-sleep:1"}
    spec = {"nodeName": node, "terminationGracePeriodSeconds": 1, "containers": [container]}
    selector = {"matchLabels": {"app": "kept"}}
    return [
        {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec},
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "kept", "namespace": "default"},
         "spec": {"minAvailable": 1, "selector": selector}},
    ]  # fmt: skip


def test_a_scientist_works_in_a_workspace(real_grid: RealGrid, browser: Browser) -> None:
    scientist, operator = log_in(browser, real_grid, "scientist"), log_in(browser, real_grid, "operator")
    infrastructure, page = operator.new_page(), scientist.new_page()
    infrastructure.goto("/infrastructure/")
    expect(infrastructure.get_by_role("row").filter(has_text=re.compile("default-"))).to_have_count(2)
    for sentence in ("no metrics", "Kept: fixed size."):
        expect(infrastructure.locator("#nodes")).to_contain_text(sentence)
    forbid_reload(infrastructure)

    execution_id = launch(page, tier="Small", title="Churn by month")
    expect(page.locator(".execution-state")).to_contain_text("Running", timeout=PULL)
    timeline = page.locator("#timeline")
    for step in ("Scheduled", "Pull", "Started"):
        expect(timeline).to_contain_text(step)
    lab = open_lab(scientist, page)
    run_cell(lab, "print(6 * 7)", "42")
    lab.close()
    page.goto(f"/executions/{execution_id}/?tab=log")
    expect(page.locator("#log")).to_contain_text("Jupyter Server", timeout=SOON)

    page.goto(f"/executions/{execution_id}/")
    stop(page)
    page.goto(f"/executions/{execution_id}/")
    expect(page.locator(".execution-state")).to_contain_text("Stopped", timeout=SOON)
    assert f"pod/workspace-{execution_id}" not in real_grid.pods()
    page.goto(f"/executions/{execution_id}/?tab=log")
    expect(page.locator("#log")).to_contain_text("Jupyter Server")
    assert was_not_reloaded(infrastructure)
    # Answered with "not found" and not with "forbidden": it may ask.
    assert "metrics-server is not installed" in real_grid.output("web")
    real_grid.nothing_was_forbidden()


@pytest.mark.skipif(
    not (API_DOWN and API_UP), reason="REAL_API_DOWN and REAL_API_UP do not say how to end and start the API server"
)
def test_the_api_server_goes_away_and_comes_back(real_grid: RealGrid, browser: Browser) -> None:
    scientist, operator = log_in(browser, real_grid, "scientist"), log_in(browser, real_grid, "operator")
    infrastructure, page = operator.new_page(), scientist.new_page()
    infrastructure.goto("/infrastructure/")
    expect(infrastructure.locator("#freshness")).to_contain_text("Live")
    forbid_reload(infrastructure)
    with real_grid.without_api_server():
        expect(infrastructure.locator("#freshness")).to_contain_text("does not answer", timeout=SOON)
        execution_id = launch(page, tier="Small", title="Asked for meanwhile")
    expect(infrastructure.locator("#freshness")).to_contain_text("Live", timeout=SOON)
    expect(page.locator(".execution-state")).to_contain_text("Running", timeout=PULL)
    stop(page)
    page.goto(f"/executions/{execution_id}/")
    expect(page.locator(".execution-state")).to_contain_text("Stopped", timeout=SOON)
    assert f"pod/workspace-{execution_id}" not in real_grid.pods()
    assert was_not_reloaded(infrastructure)
