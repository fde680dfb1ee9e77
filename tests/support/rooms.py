"""The sums of what pods request of their nodes."""

from collections.abc import Iterable

from grid.diagnosis.room import NodeRoom
from grid.kube.objects import Pod


def room_of(pods: Iterable[Pod]) -> NodeRoom:
    room = NodeRoom()
    for pod in pods:
        room.pod_changed(None, pod)
    return room
