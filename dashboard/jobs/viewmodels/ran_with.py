"""The record of all that an attempt of a run ran with: as facts for its page and for comparisons, and as JSON; pure.

Secrets and the environment's variables have names in it and no values; what the job's owner typed as variables and parameters is there.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec

from dashboard.usage.viewmodels.usage import price_words
from grid.core.translation import gettext as _
from grid.executions.spec import ExecutionSpec, JobSpec, TierSpec
from grid.models import Execution

NOT_LAUNCHED: Mapping[str, str] = dict.fromkeys(
    (_("Image"), _("CPU"), _("Memory"), _("Node pool")), _("not launched yet")
)


_FOR_PODS = frozenset({"tolerations", "extra_labels", "extra_annotations"})  # of a tier; the record leaves them out


@dataclass(frozen=True, slots=True)
class RanWith:
    """What was frozen at the launch, and the row with what the kubelet told of it since."""

    spec: ExecutionSpec
    execution: Execution


def launch_facts(ran: RanWith) -> dict[str, str]:
    """Return what was asked of the cluster, and where it ran, without what the run itself was asked for."""
    environment = ran.spec.environment
    facts = {
        _("Environment's revision"): str(environment.revision or ""),
        _("Image"): environment.image,
        _("Image that ran"): ran.execution.image_id,
    }
    if not (ran.spec.job and ran.spec.job.command):
        facts[_("Environment's command")] = shlex.join(environment.command)
    facts |= _size(ran.spec.tier)
    if sidecars := ran.spec.price_beside:
        facts[_("Price beside the tier's")] = _("{price}, for nginx and the executor", price=price_words(sidecars))
    facts |= {_("Environment's variable {name}", name=name): _("set") for name in sorted(environment.variables)}
    for secret in ran.spec.secrets:
        facts[_("Secret {name}", name=secret.name)] = _("a file") if secret.is_file else _("a variable")
    facts[_("Node")] = ran.execution.node_name
    return {name: text for name, text in facts.items() if text}


def _size(tier: TierSpec) -> dict[str, str]:
    return {
        _("CPU"): _with_limit(tier.cores, tier.cores_limit),
        _("Memory"): _with_limit(tier.memory, tier.memory_limit),
        _("GPUs"): f"{tier.gpus} {tier.gpu_resource}" if tier.gpus else "",
        _("Shared memory"): tier.shared_memory,
        _("Scratch storage"): tier.ephemeral_storage,
        _("Node pool"): tier.node_pool,
        _("Price"): price_words(Decimal(tier.cost_per_hour)),
    }


def _with_limit(request: str, limit: str) -> str:
    return request if limit == request else _("{request}, at most {limit}", request=request, limit=limit)


def changed_size(ran: RanWith, now: TierSpec) -> list[str]:
    """Return sentences about what the tier gives now in place of what it gave then."""
    then, today = _size(ran.spec.tier), _size(now)
    return [
        _("{name}: {today} now, {then} then.", name=name, today=today[name] or _("none"), then=then[name] or _("none"))
        for name in then
        if then[name] != today[name]
    ]


def record_json(ran: RanWith) -> dict[str, Any]:
    spec, job, execution = ran.spec, ran.spec.job or JobSpec(job="", run=0), ran.execution
    tier = msgspec.to_builtins(spec.tier)
    return {
        "execution": spec.id,
        "job": job.job,
        "run": job.run,
        "attempt": job.attempt,
        "project": spec.project.id,
        "owner": spec.owner,
        "environment": {
            "id": spec.environment.id,
            "name": spec.environment.name,
            "revision": spec.environment.revision or None,
        },
        "image": spec.environment.image,
        "image_id": execution.image_id,
        "command": job.command or list(spec.environment.command),
        "folder": job.folder,
        "variables": job.variables,
        "parameters": job.parameters,
        "environment_variables": sorted(spec.environment.variables),
        "secrets": [secret.name for secret in spec.secrets],
        "page_port": job.page_port,
        "timeout_seconds": job.timeout_seconds,
        "tier": {name: value for name, value in tier.items() if name not in _FOR_PODS},
        "node": execution.node_name,
        **{name: getattr(execution, name) for name in ("state", "exit_code", "requested_at", "started_at", "ended_at")},
    }
