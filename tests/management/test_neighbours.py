"""What `make run` says that other users of the machine reach."""

from grid.management.commands.up import reachable
from grid.management.demo import CODE_SERVER_COMMAND, JUPYTERLAB_COMMAND
from grid.models import Environment

LAB = Environment(name="JupyterLab", kind="workspace", port=8888, command=JUPYTERLAB_COMMAND)
CODE = Environment(name="VS Code", kind="workspace", port=8080, command=CODE_SERVER_COMMAND)
OLD = Environment(name="Old lab", kind="workspace", port=8888, command=["lab", "--ip=$(POD_IP)"])
SCRIPT = Environment(name="Script", kind="job", command=["python", "main.py"])
CLUSTERS = [Environment(name=name, kind="cluster", frameworks={name: "1"}) for name in ("spark", "dask")]
OWN = "every port that people's own programs open."


def test_workspaces_on_sockets_are_not_among_what_others_reach() -> None:
    sentence = reachable([LAB, CODE, SCRIPT], has_front=True)
    assert sentence == f"Other users of this machine reach, past our login: {OWN}"


def test_clusters_and_what_listens_on_ports_are_named() -> None:
    archived = Environment(name="Gone", kind="app", port=1024, is_archived=True)
    assert reachable([LAB, OLD, archived, *CLUSTERS], has_front=True) == (
        "Other users of this machine reach, past our login: Dask and Spark clusters; "
        f"the web servers of Old lab, which listen on a port of their pod; {OWN}"
    )
