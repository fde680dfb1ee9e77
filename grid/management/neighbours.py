"""What other users of this machine reach of a Compute Grid that `make run` starts (pure)."""

from collections.abc import Sequence

from grid.core.wording import listed
from grid.executions.listening import names_socket
from grid.models import Environment, Framework
from grid.models.environment import Kind


def reachable(environments: Sequence[Environment], *, has_front: bool) -> str:
    """Return in one sentence what answers others without our login, as these environments are. A Unix socket with nginx in front does
    not."""
    offered = [environment for environment in environments if not environment.is_archived]
    clusters = {name for each in offered if each.kind == Kind.CLUSTER for name in each.frameworks}
    listening = [each for each in offered if each.kind in (Kind.WORKSPACE, Kind.APP) and each.port]
    on_ports = [each.name for each in listening if not (has_front and names_socket(each.command))]
    things = []
    if clusters:
        things.append(f"{listed([label for name, label in Framework.choices if name in clusters])} clusters")
    if on_ports:
        things.append(f"the web servers of {listed(on_ports)}, which listen on a port of their pod")
    things.append("every port that people's own programs open")
    return f"Other users of this machine reach, past our login: {'; '.join(things)}."
