"""Where the web server of a workspace, app or job listens, so that nobody reaches it beside its front (pure). Behind a front it listens on
a Unix socket, if its environment's command has the placeholder `{socket}`, else on the address of GRID_LISTEN_HOST (`{host}` in a
command), which is the pod's own loopback: nginx shares the pod's network. A pod's containers alone mount the socket's folder. Without a
front it listens on the pod's address, where the proxy asks for it."""

from typing import Any

from grid.executions.front import ADDRESS, PROBE_HEADER, PROGRAM_HOST, PROGRAM_SOCKET, probe_key
from grid.executions.kinds import kind_of
from grid.executions.spec import ExecutionSpec
from grid.executions.storage import PROJECT_PATH

LISTEN_HOST = "GRID_LISTEN_HOST"
LOOPBACK = "127.0.0.1"
# The kubelet of the embedded cluster makes a volume of this name with a short path: that of a Unix socket has 107 bytes at most.
SOCKETS, SOCKETS_PATH = "sockets", "/run/program"
SOCKET_PATH = f"{SOCKETS_PATH}/web.sock"
_SOCKET, _PORT, _HOST = "{socket}", "{port}", "{host}"
# For good: the timeout of preparing ends a program that never answers, and not the probe.
_UNTIL_IT_ANSWERS = 24 * 60 * 60


def uses_socket(spec: ExecutionSpec) -> bool:
    """Return whether its web server listens on a Unix socket."""
    has_command = spec.job is None or not spec.job.command
    return spec.front is not None and has_command and names_socket(spec.environment.command)


def names_socket(command: tuple[str, ...] | list[str]) -> bool:
    """Return whether an environment's command says where its Unix socket is to be."""
    return any(_SOCKET in part for part in command)


def command(spec: ExecutionSpec) -> list[str]:
    """Return the environment's command, filled in. It may have arguments for both ways to listen: without a socket those with `{socket}`
    are left out, with one those with `{port}` or `{host}`."""
    left_out = {_PORT, _HOST} if uses_socket(spec) else {_SOCKET}
    return [_filled_in(part, spec) for part in spec.environment.command if not any(name in part for name in left_out)]


def _filled_in(part: str, spec: ExecutionSpec) -> str:
    """Fill in only our placeholders: any other brace belongs to the program."""
    ours = {_PORT: str(spec.port), _HOST: f"$({LISTEN_HOST})" if spec.port else "$(POD_IP)", _SOCKET: SOCKET_PATH}
    ours |= {"{base_url}": spec.base_url, "{project}": PROJECT_PATH}
    for placeholder, text in ours.items():
        part = part.replace(placeholder, text)
    return part


def variables(spec: ExecutionSpec) -> dict[str, dict[str, Any]]:
    """Return the variable that says on which address its web server has to listen; {} without one. It refers to POD_IP."""
    return {LISTEN_HOST: {"value": LOOPBACK if spec.front else "$(POD_IP)"}} if spec.port else {}


def volumes(spec: ExecutionSpec) -> list[dict[str, Any]]:
    """Return the volume of the socket."""
    socket = {"name": SOCKETS, "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}
    return [socket] if uses_socket(spec) else []


def mounts(spec: ExecutionSpec) -> list[dict[str, Any]]:
    """Return where the program and nginx find it."""
    return [{"name": SOCKETS, "mountPath": SOCKETS_PATH}] if uses_socket(spec) else []


def upstream(spec: ExecutionSpec) -> tuple[str, ...]:
    """Return the servers at which nginx looks for the program, in nginx's words. One that listens on a port may do so on its pod's address
    alone, as where its command says $(POD_IP)."""
    if uses_socket(spec):
        return (f"unix:{PROGRAM_SOCKET}",)
    return (f"{PROGRAM_HOST}:{spec.port} max_fails=0", f"{ADDRESS}:{spec.port} max_fails=0 backup")


def probes(spec: ExecutionSpec, front_key: str) -> dict[str, Any]:
    """Return the probe that says when the program is ready. {} where nothing waits for that: a job runs before its page is there, if ever.
    Behind a front the kubelet does not reach the program, so it asks nginx, which lets its probe through by a header of its own."""
    if not spec.port or not kind_of(spec.kind).is_ready_when_it_answers:
        return {}
    path, timing = spec.environment.readiness_path, {"periodSeconds": 2, "timeoutSeconds": 2}
    if spec.front is None:
        asked: dict[str, Any] = {"tcpSocket": {"port": spec.port}}
        if path:
            asked = {"httpGet": {"path": spec.base_url + path.removeprefix("/"), "port": spec.port}}
        return {"readinessProbe": {**asked, **timing, "failureThreshold": 3}}
    headers = [{"name": PROBE_HEADER, "value": probe_key(spec.id, front_key)}]
    through = {"path": spec.base_url + path.removeprefix("/"), "port": spec.front.port, "httpHeaders": headers}
    if path:
        return {"readinessProbe": {"httpGet": through, **timing, "failureThreshold": 3}}
    # Any answer will do, and one is enough: to be asked every two seconds would fill the program's log.
    return {"startupProbe": {"httpGet": through, **timing, "failureThreshold": _UNTIL_IT_ANSWERS}}
