"""What other users of this machine reach of a Compute Grid that `make run` starts (pure)."""

from collections.abc import Sequence

from grid.core.wording import listed
from grid.executions.listening import names_socket
from grid.models import Environment, Framework
from grid.models.environment import Kind


def reachable(environments: Sequence[Environment], *, has_front: bool) -> str:
    """Return in one sentence what answers others without our login, as these environments are. A Unix socket with nginx in front does
    not."""
    offered = [one for one in environments if not one.is_archived]
    clusters = {name for one in offered if one.kind == Kind.CLUSTER for name in one.frameworks}
    found = []
    if clusters:
        found.append(f"{listed([label for name, label in Framework.choices if name in clusters])} clusters")
    on_ports = [
        one.name
        for one in offered
        if one.kind in (Kind.WORKSPACE, Kind.APP) and one.port and not (has_front and names_socket(one.command))
    ]
    if on_ports:
        found.append(f"the web servers of {listed(on_ports)}, which listen on a port of their pod")
    found.append("every port that people's own programs open")
    return f"Other users of this machine reach, past our login: {'; '.join(found)}."
