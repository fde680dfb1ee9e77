"""The content of the population: pools, tiers, people, projects and executions, drawn from a seed. Pure."""

import random
import uuid
from collections import Counter
from dataclasses import dataclass

from grid.sandbox.pools import NodePool, PoolTaint

_ID_ALPHABET = "abcdefghijkmnpqrstvwxyz23456789"
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
PODS_OF_A_NODE = 30
MOST_NODES, MOST_PODS, MOST_CHURN = 5000, 150_000, 1000.0  # as many nodes and pods as Kubernetes itself allows
_FIRST_NAMES = (
    "amara",
    "bilal",
    "chiara",
    "dmitri",
    "elena",
    "farid",
    "greta",
    "hiro",
    "ines",
    "jonas",
    "kofi",
    "leila",
    "mateo",
    "nadia",
)
_SUBJECTS = ("churn", "fraud", "forecast", "vision", "pricing", "search", "credit", "sensors", "genome", "routes")
_TITLES = ("Explore", "Train", "Evaluate", "Clean", "Backfill", "Score", "Plot", "Tune")


@dataclass(frozen=True, slots=True)
class Size:
    """The numbers of nodes and pods, the changes per second, and the seed; the same seed gives the same names and sizes."""

    nodes: int = 0
    pods: int = 0
    churn: float = 0.0
    seed: int = 1


def wrong_size(*, nodes: int = 0, pods: int = 0, churn: float = 0.0) -> str:
    """Return what is wrong with the numbers, as a sentence, or ""."""
    if 0 <= nodes <= MOST_NODES and 0 <= pods <= MOST_PODS and 0 <= churn <= MOST_CHURN:  # False for a NaN
        return ""
    return (
        f"A population has between 0 and {MOST_NODES:,} nodes, between 0 and {MOST_PODS:,} pods, "
        f"and between 0 and {MOST_CHURN:,.0f} changes a second."
    )


@dataclass(frozen=True, slots=True)
class SimulatedTier:
    """A hardware tier as pods show it. Cores in millicores, memory in MiB."""

    id: str
    pool: str
    millicores: int
    mebibytes: int
    gpus: int = 0

    @property
    def requests(self) -> dict[str, str]:
        cards = {"nvidia.com/gpu": str(self.gpus)} if self.gpus else {}
        return {"cpu": f"{self.millicores}m", "memory": f"{self.mebibytes}Mi", "ephemeral-storage": "2Gi", **cards}


@dataclass(frozen=True, slots=True)
class SimulatedEnvironment:
    id: str
    image: str
    framework: str = ""


@dataclass(frozen=True, slots=True)
class SimulatedExecution:
    """One execution. `workers` is 0 unless it is a cluster."""

    id: str
    uid: str
    kind: str
    title: str
    owner: str
    project: str
    tier: SimulatedTier
    environment: SimulatedEnvironment
    workers: int = 0

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.id}"

    @property
    def pods(self) -> int:
        return 1 + self.workers


def _pool(name: str, instance: str, cores: int, gibibytes: int, *, gpus: int = 0, spot: bool = False) -> NodePool:
    capacity = {"cpu": str(cores), "memory": f"{gibibytes}Gi", "ephemeral-storage": "1000Gi", "pods": "110"}
    return NodePool(
        name=name,
        instance_type=instance,
        capacity=capacity | ({"nvidia.com/gpu": str(gpus)} if gpus else {}),
        minimum=0,
        maximum=5000,
        labels={"karpenter.sh/capacity-type": "spot"} if spot else {},
        taints=(PoolTaint("nvidia.com/gpu", "present", "NoSchedule"),) if gpus else (),
    )


# Each pool with its share of the nodes, and its share of the executions.
POOLS = (
    (_pool("cpu", "m5.16xlarge", 64, 256), 0.6, 0.64),
    (_pool("memory", "r5.16xlarge", 64, 512), 0.2, 0.16),
    (_pool("spot", "m5.12xlarge", 48, 192, spot=True), 0.15, 0.19),
    (_pool("gpu", "p3.16xlarge", 64, 488, gpus=8), 0.05, 0.01),
)
TIERS = (
    SimulatedTier("cpu-small", "cpu", 1000, 4096),
    SimulatedTier("cpu-medium", "cpu", 2000, 8192),
    SimulatedTier("memory", "memory", 1500, 14336),
    SimulatedTier("spot", "spot", 1000, 4096),
    SimulatedTier("gpu", "gpu", 7000, 49152, gpus=1),
)
_ENVIRONMENTS = {
    "workspace": (
        SimulatedEnvironment("jupyterlab", "compute-grid/jupyterlab:4.6"),
        SimulatedEnvironment("datascience", "compute-grid/datascience:1"),
    ),
    "job": (SimulatedEnvironment("python-script", "compute-grid/datascience:1"),),
    "app": (SimulatedEnvironment("dashboard-app", "compute-grid/datascience:1"),),
    "cluster": (
        SimulatedEnvironment("dask-cluster", "compute-grid/dask:2026.8", "dask"),
        SimulatedEnvironment("ray-cluster", "compute-grid/ray:2.60", "ray"),
        SimulatedEnvironment("spark-cluster", "compute-grid/spark:4.3", "spark"),
    ),
}
_KINDS = {"workspace": 30, "job": 20, "app": 5, "cluster": 45}
_FEWEST_WORKERS, _MOST_WORKERS = 4, 27


class PopulationPlan:
    """A generator that draws names, uids and executions from one seed."""

    def __init__(self, size: Size) -> None:
        self.rng = random.Random(size.seed)
        executions = max(1, size.pods // 8)
        self._people = max(4, executions // 20)
        self._projects = max(3, self._people // 5)

    def node_name(self, pool: str) -> str:
        return f"{pool}-{self.suffix(5)}"

    def suffix(self, length: int) -> str:
        return "".join(self.rng.choices(_SUFFIX, k=length))

    def uid(self) -> str:
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def execution(self, most_pods: int) -> SimulatedExecution:
        """Return the next execution, with at most `most_pods` pods."""
        rng = self.rng
        kind = rng.choices(list(_KINDS), weights=list(_KINDS.values()))[0]
        if kind == "cluster" and most_pods <= _FEWEST_WORKERS:
            kind = "job"
        workers = min(rng.randint(_FEWEST_WORKERS, _MOST_WORKERS), most_pods - 1) if kind == "cluster" else 0
        person = int(self._people * rng.random() ** 2)  # a few people launch most
        project = (person + rng.randrange(2)) % self._projects
        pool = rng.choices([pool.name for pool, _, _ in POOLS], weights=[wanted for _, _, wanted in POOLS])[0]
        return SimulatedExecution(
            id="".join(rng.choices(_ID_ALPHABET, k=10)),
            uid=self.uid(),
            kind=kind,
            title=f"{rng.choice(_TITLES)} {_SUBJECTS[project % len(_SUBJECTS)]} {rng.randrange(1, 100)}",
            owner=f"{_FIRST_NAMES[person % len(_FIRST_NAMES)]}-{person}",
            project=f"{_SUBJECTS[project % len(_SUBJECTS)]}-{project}",
            tier=rng.choice([tier for tier in TIERS if tier.pool == pool]),
            environment=rng.choice(_ENVIRONMENTS[kind]),
            workers=workers,
        )


def pools_of(nodes: int) -> Counter[str]:
    """Return the number of nodes in each pool; it only grows with `nodes`, and the shares are right at any number."""
    counts: Counter[str] = Counter()
    for number in range(nodes):
        counts[max(POOLS, key=lambda row: row[1] * (number + 1) - counts[row[0].name])[0].name] += 1
    return counts
