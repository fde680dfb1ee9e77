"""What a member of a project plants among its files is not run when another member's workspace starts: real JupyterLab, real files."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from grid.executions.manifests import build
from grid.executions.spec import EnvironmentSpec, ExecutionSpec, HomeSpec, ProjectSpec
from grid.kube.resources import PODS, VOLUME_CLAIMS
from grid.management.demo import JUPYTERLAB_COMMAND
from tests.clusters.cluster_specs import HEAD_TIER
from tests.end_to_end.grid import IMAGES
from tests.sandbox.kubelet.support import NODE, World
from tests.support.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
IMAGE = "compute-grid/jupyterlab:4.6"
PATIENCE = 30.0
TOKEN = "the-token-of-the-workspace"
NOTEBOOK = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
# What Jupyter, IPython, Python and pip read from HOME or from the folder in which they are started, and modules that a kernel loads.
PLANTED_PYTHON = (
    *(".jupyter/jupyter_server_config.py", ".jupyter/jupyter_lab_config.py", ".jupyter/custom/custom.py"),
    *("jupyter_server_config.py", "jupyter_config.py", "jupyter_lab_config.py", "jupyter_notebook_config.py"),
    *(".ipython/profile_default/startup/x.py", ".ipython/profile_default/ipython_config.py"),
    *("profile_default/ipython_config.py", "profile_default/startup/x.py", "ipython_config.py"),
    *("sitecustomize.py", "usercustomize.py", ".local/lib/python3.11/site-packages/usercustomize.py"),
    *("ipykernel_launcher.py", "ipykernel.py", "IPython.py", "traitlets.py", "zmq.py", "jedi.py", "jupyter_server.py"),
    *("runpy.py", "contextlib.py", "json.py", "asyncio.py", "pathlib.py", "readline.py", "debugpy.py", "psutil.py"),
    # Asked for at start, and not installed.
    *("argcomplete.py", "django.py", "_winapi.py", "storemagic.py", "_pydevd_bundle_ext.py"),
)


@dataclass
class Lab:
    world: World
    url: str
    http: aiohttp.ClientSession

    @property
    def project(self) -> Path:
        return self.world.directory / "volumes" / "default" / "project-churn"

    @property
    def home(self) -> Path:
        return self.world.directory / "volumes" / "default" / "home-churn-7"

    @property
    def witness(self) -> Path:
        """Where whatever is run says that it was."""
        return self.world.directory / "witness"

    def plant(self) -> None:
        for name in PLANTED_PYTHON:
            self._write(name, f"open({str(self.witness)!r}, 'a').write({name!r} + '\\n')\n")
        for name in (".bashrc", ".bash_profile", ".bash_login", ".profile", ".bash_logout"):
            self._write(name, f"echo {name} >> {self.witness}\n")
        self._write("beside.py", "WORD = 'a module beside the notebook'\n")

    def _write(self, name: str, text: str) -> None:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    async def start(self) -> None:
        self.url = f"http://{await launch(self.world, workspace())}:8888/"

    async def ask(self, method: str, where: str, **body: Any) -> dict[str, Any]:
        async with self.http.request(method, self.url + where, json=body) as answer:
            assert answer.ok, await answer.text()
            reply: dict[str, Any] = await answer.json()
            return reply

    async def run_cell(self, code: str) -> str:
        """In a notebook in the project's folder; what it prints."""
        await self.ask("PUT", "api/contents/n.ipynb", type="notebook", format="json", content=NOTEBOOK)
        session = await self.ask(
            "POST", "api/sessions", path="n.ipynb", name="n", type="notebook", kernel={"name": "python3"}
        )
        async with self.http.ws_connect(f"{self.url}api/kernels/{session['kernel']['id']}/channels") as channels:
            header = {"msg_id": "1", "msg_type": "execute_request", "username": "", "session": "1", "version": "5.4"}
            content = {"code": code, "silent": False, "store_history": False}
            await channels.send_json(
                {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
            )
            # The reply comes over a channel of its own, often before what was printed; "idle" comes after it on the same channel.
            printed, is_idle = "", False
            while not is_idle:
                message = await channels.receive_json(timeout=PATIENCE)
                if message["parent_header"].get("msg_id") == "1":
                    if message["msg_type"] in ("stream", "error"):
                        printed += message["content"].get("text") or "\n".join(message["content"]["traceback"])
                    is_idle = message["content"].get("execution_state") == "idle"
            return printed

    async def run_in_terminal(self, line: str, until: str) -> None:
        """Opened in the project's folder, as JupyterLab does."""
        name = (await self.ask("POST", "api/terminals", cwd=str(self.project)))["name"]
        async with self.http.ws_connect(f"{self.url}terminals/websocket/{name}") as terminal:
            await terminal.send_json(["stdin", line + "\r"])
            shown = ""
            while until not in shown:
                kind, *parts = await terminal.receive_json(timeout=PATIENCE)
                shown += parts[0] if kind == "stdout" else ""


async def launch(world: World, spec: ExecutionSpec, front_key: str = "") -> str:
    """Create its objects as the product does; returns the pod's address once the program is ready."""
    for manifest in build(spec, namespace="default", token=TOKEN, front_key=front_key):
        body = json.loads(json.dumps(manifest.body))
        if manifest.resource == PODS:
            body["spec"]["nodeName"] = NODE
        made = await world.api.create(manifest.resource.path(namespace="default"), body)
        if manifest.resource == VOLUME_CLAIMS:
            status = VOLUME_CLAIMS.path("default", made["metadata"]["name"], "status")
            await world.api.patch(status, {"status": {"phase": "Bound"}})
    await world.ready(spec.object_name)
    return str(world.api.status(spec.object_name)["podIP"])


def workspace() -> ExecutionSpec:
    return ExecutionSpec(
        id="abc",
        kind="workspace",
        owner="alice",
        port=8888,
        project=ProjectSpec(id="churn", volume_name="project-churn", volume_size="1Gi"),
        home=HomeSpec(volume_name="home-churn-7", volume_size="1Gi"),
        environment=EnvironmentSpec(id="lab", name="Lab", image=IMAGE, command=tuple(JUPYTERLAB_COMMAND)),
        tier=HEAD_TIER,
    )


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Lab]:
    world = World(tmp_path, images_directory=IMAGES)
    try:
        await world.images.pull(IMAGE)
        async with aiohttp.ClientSession(headers={"Authorization": f"token {TOKEN}"}) as http:
            yield Lab(world, "", http)
    finally:
        await world.close()


async def test_planted_project_files_are_not_run_by_workspace_start(lab: Lab) -> None:
    lab.plant()
    await lab.start()
    names = {entry["name"] for entry in (await lab.ask("GET", "api/contents"))["content"]}
    assert "beside.py" in names, "the project's files are what JupyterLab shows"
    assert not lab.witness.exists(), lab.witness.read_text()

    printed = await lab.run_cell("import beside, os; print(beside.WORD, os.getcwd(), os.environ['HOME'], sep='|')")
    assert printed.strip().split("|") == ["a module beside the notebook", str(lab.project), str(lab.home)]
    assert not lab.witness.exists(), lab.witness.read_text()

    await lab.run_in_terminal("bash -l -i -c 'echo $((6 * 7)) in $PWD'", f"42 in {lab.project}")
    assert not lab.witness.exists(), lab.witness.read_text()


async def test_tokens_and_runtime_files_are_unreadable_to_others(lab: Lab) -> None:
    lab.project.mkdir(parents=True)
    await lab.start()
    await lab.run_cell("open('result.txt', 'w').write('done')")
    runtime = next(
        lab.world.runtime.pod_directory(lab.world.api.pod("workspace-abc")["metadata"]["uid"]).rglob("runtime")
    )
    kinds = {path.name.split("-")[0] for path in runtime.iterdir()}
    assert {"jpserver", "kernel", "jupyter_cookie_secret"} <= kinds
    files = {str(path.relative_to(lab.project)): path for path in lab.project.rglob("*") if path.is_file()}
    assert files.keys() == {"result.txt", "n.ipynb", ".ipynb_checkpoints/n-checkpoint.ipynb"}
    for place in (lab.home, lab.project):
        assert not any(TOKEN.encode() in path.read_bytes() for path in place.rglob("*") if path.is_file())
    assert lab.home.stat().st_mode & 0o777 == 0o700
    await lab.world.delete("workspace-abc", grace=1)
    await lab.world.gone("workspace-abc")
    await eventually(lambda: not runtime.exists(), "the runtime files go with the pod")
    assert lab.home.is_dir()
