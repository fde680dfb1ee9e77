"""Loopback addresses for nodes, pods and Services, unique on this machine and the same after a restart.

A cluster claims one of 256 blocks: pods are numbered inside its part of 127.64.0.0/10, nodes inside its part of
127.32.0.0/12, Services inside its part of 127.48.0.0/12, each at the number of its cluster IP if that is free. The claim is an
abstract socket that the kernel gives to one process only and takes back when that process ends. So two clusters on one machine
never share addresses, and a killed one leaves nothing behind.
"""

import contextlib
import ipaddress
import json
import random
import socket
from collections.abc import Collection
from pathlib import Path

_BLOCKS = 256
_POD_BASE, _PODS_PER_BLOCK = int(ipaddress.IPv4Address("127.64.0.0")), 2**22 // _BLOCKS
_NODE_BASE, _NODES_PER_BLOCK = int(ipaddress.IPv4Address("127.32.0.0")), 2**20 // _BLOCKS
_SERVICE_BASE, _SERVICES_PER_BLOCK = int(ipaddress.IPv4Address("127.48.0.0")), 2**20 // _BLOCKS


class NoAddressLeft(OSError):
    """Every address of the block is taken."""


class AddressBook:
    """The addresses in use, by owner, kept in a file. It belongs to one process at a time."""

    def __init__(self, path: Path, *, rng: random.Random | None = None) -> None:
        self._path = path
        self._rng = rng or random.Random()
        self._claim: socket.socket | None = None
        self._pods: dict[str, int] = {}
        self._nodes: dict[str, int] = {}
        self._services: dict[str, int] = {}
        self._next_pod = 1
        self._block = -1
        with contextlib.suppress(FileNotFoundError, ValueError, KeyError):
            stored = json.loads(path.read_text(encoding="utf-8"))
            self._block, self._next_pod = stored["block"], stored["next_pod"]
            self._pods, self._nodes = stored["pods"], stored["nodes"]
            self._services = stored.get("services", {})

    def open(self) -> None:
        """Claim the block of last time, or another one if another cluster has claimed that."""
        wanted = [self._block] if self._block >= 0 else []
        for block in wanted + self._rng.sample(range(_BLOCKS), _BLOCKS):
            claim = _claim(block)
            if claim is not None:
                break
        else:
            raise NoAddressLeft("256 embedded clusters run on this machine: stop one of them first")
        if block != self._block:
            self._pods, self._nodes, self._services = {}, {}, {}
        self._claim, self._block = claim, block
        self._save()

    def close(self) -> None:
        if self._claim is not None:
            self._claim.close()
            self._claim = None

    def node(self, name: str) -> str:
        if name not in self._nodes:
            taken = set(self._nodes.values())
            number = next((n for n in range(1, _NODES_PER_BLOCK) if n not in taken), None)
            if number is None:
                raise NoAddressLeft(f"this machine already has {len(self._nodes)} nodes, no address is left for {name}")
            self._keep(self._nodes, name, number)
        return str(ipaddress.IPv4Address(_NODE_BASE + self._block * _NODES_PER_BLOCK + self._nodes[name]))

    def pod(self, uid: str) -> str:
        """Return the pod's address; a new one is the one that was not used for the longest time."""
        if uid not in self._pods:
            taken = set(self._pods.values())
            for step in range(_PODS_PER_BLOCK - 1):
                number = 1 + (self._next_pod - 1 + step) % (_PODS_PER_BLOCK - 1)
                if number not in taken:
                    break
            else:
                raise NoAddressLeft("no address is left for another pod on this machine")
            self._next_pod = number + 1
            self._keep(self._pods, uid, number)
        return str(ipaddress.IPv4Address(_POD_BASE + self._block * _PODS_PER_BLOCK + self._pods[uid]))

    def service(self, cluster_ip: str) -> str:
        """Return the address that stands for a cluster IP: always the same one, unless another Service has it."""
        if cluster_ip not in self._services:
            taken = set(self._services.values())
            first = int(ipaddress.ip_address(cluster_ip))
            for step in range(_SERVICES_PER_BLOCK - 1):
                number = 1 + (first + step) % (_SERVICES_PER_BLOCK - 1)
                if number not in taken:
                    break
            else:
                raise NoAddressLeft(f"no address is left on this machine for another Service: {cluster_ip}")
            self._keep(self._services, cluster_ip, number)
        number = self._services[cluster_ip]
        return str(ipaddress.IPv4Address(_SERVICE_BASE + self._block * _SERVICES_PER_BLOCK + number))

    def services(self) -> Collection[str]:
        """Return the cluster IPs that have an address."""
        return self._services.keys()

    def release_pod(self, uid: str) -> None:
        self._give_back(self._pods, uid)

    def release_node(self, name: str) -> None:
        self._give_back(self._nodes, name)

    def release_service(self, cluster_ip: str) -> None:
        self._give_back(self._services, cluster_ip)

    def _keep(self, table: dict[str, int], key: str, number: int) -> None:
        """Store the address before it is given out, because it must be the same one after a restart. Raise OSError."""
        table[key] = number
        try:
            self._save()
        except OSError:
            del table[key]
            raise

    def _give_back(self, table: dict[str, int], key: str) -> None:
        if table.pop(key, None) is not None:
            with contextlib.suppress(OSError):  # on a full disk it stays taken there until the next change
                self._save()

    def _save(self) -> None:
        content = {
            "block": self._block,
            "next_pod": self._next_pod,
            "pods": self._pods,
            "nodes": self._nodes,
            "services": self._services,
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self._path.with_name(f"{self._path.name}.unfinished")
        unfinished.write_text(json.dumps(content), encoding="utf-8")
        unfinished.replace(self._path)


def _claim(block: int) -> socket.socket | None:
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        claim.bind(f"\0compute-grid-addresses-{block}")
    except OSError:
        claim.close()
        return None
    return claim
