"""What an execution that is launched on a tier now would request of its node, with what stands beside its program; reads the database."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings

from grid.diagnosis.resources import resource_amounts
from grid.executions.front import AuthProxySpec
from grid.executions.kinds import all_kinds, kind_of
from grid.executions.launchsettings import launch_settings
from grid.executions.preview import requests_of, tolerations_of
from grid.executions.runpod import executor_requests, front_requests
from grid.executions.spec import FilesSpec, TierSpec, tier_spec
from grid.models import Environment, HardwareTier, Project
from grid.tiers.tierdoctor import Sidecar, TierRequest


@dataclass(frozen=True, slots=True)
class Sidecars:
    """What may stand beside programs that are launched now: the executor, and nginx in front of web pages."""

    files: FilesSpec | None = None
    front: AuthProxySpec | None = None


def sidecars() -> Sidecars:
    """Return what may stand beside programs: the executor once a project's files are in Git, and the front where it is on."""
    files = None
    if Project.objects.filter(is_archived=False).exclude(files=Project.Files.VOLUME).exists():
        cores, memory = settings.EXECUTOR_CORES, settings.EXECUTOR_MEMORY
        files = FilesSpec(claim="", repository="", image="", cores=cores, memory=memory)
    return Sidecars(files, launch_settings().any_front())


def tier_request(tier: HardwareTier, known: Sidecars) -> TierRequest:
    """Return what an execution launched on the tier now would ask of its node; a quantity that cannot be read counts as 0."""
    spec = tier_spec(tier)
    with_front = {kind.name for kind in all_kinds() if kind.has_front}
    asked = _asked(spec, known, has_front=not tier.kinds or bool(set(tier.kinds) & with_front))
    return TierRequest(tier.node_pool, requests_of(spec), tolerations_of(spec), _total(asked), tuple(asked))


def requests_beside(spec: TierSpec, environment: Environment, known: Sidecars) -> Mapping[str, int]:
    """Return what the sidecars of the environment's program on the tier take of a node."""
    return _total(_asked(spec, known, has_front=bool(environment.port) and kind_of(environment.kind).has_front))


def _asked(spec: TierSpec, known: Sidecars, *, has_front: bool) -> Mapping[Sidecar, Mapping[str, str]]:
    asked: dict[Sidecar, Mapping[str, str]] = {}
    if known.front and has_front:
        asked["front"] = front_requests(known.front)
    if known.files:
        asked["executor"] = executor_requests(known.files, with_disk=bool(spec.ephemeral_storage))
    return asked


def _total(asked: Mapping[Sidecar, Mapping[str, str]]) -> Counter[str]:
    return sum((Counter(resource_amounts(requests)) for requests in asked.values()), Counter[str]())
