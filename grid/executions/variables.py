"""The environment variables of an execution's containers, and the Secret for values that nobody should read in a pod. Anybody who may read
pods can read their variables, so the values of an environment's variables are in the execution's Secret and the pod only refers to them. A
value that refers to another variable as $(NAME) is written in the pod: Kubernetes expands nothing else. A job's variables and parameters
are all in the Secret, so that they reach the program as they were typed."""

from collections.abc import Mapping
from typing import Any

from grid.core.regexes import Expression
from grid.executions import jupyter, listening
from grid.executions.front import key_file
from grid.executions.spec import ExecutionSpec
from grid.executions.storage import HOME_PATH, places, stored_secrets_name

_TOKEN_KEY = "token"
FRONT_KEY_KEY = "front.key"
# No key of ours has this prefix; with it every variable's name is a valid key.
_KEY_PREFIX = "variable."
_JOB_KEY_PREFIX = "job."
_REFERENCE = Expression(r"\$\([^)]+\)")


def secret_data(spec: ExecutionSpec, *, token: str = "", front_key: str = "") -> dict[str, str]:
    """Return the Secret's data; {} when there is nothing to keep."""
    values = {_TOKEN_KEY: token} if token else {}
    if spec.front:
        values[FRONT_KEY_KEY] = key_file(spec.id, front_key)
    values |= {f"{_KEY_PREFIX}{name}": value for name, value in spec.environment.variables.items() if _is_kept(value)}
    of_job = spec.job.environment if spec.job else {}
    return values | {f"{_JOB_KEY_PREFIX}{name}": value for name, value in of_job.items()}


def token_variable(spec: ExecutionSpec) -> dict[str, Any]:
    return {"JUPYTER_TOKEN": _from_secret(spec.object_name, _TOKEN_KEY)}


def variables(spec: ExecutionSpec, more: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return ours, then `more`, then the job's, then the stored secrets, then the environment's; of one name the first of these wins. Each
    may refer to the earlier ones as $(POD_IP) or $(DB_PASSWORD): Kubernetes expands only earlier ones."""
    of_jupyter = jupyter.variables(spec, HOME_PATH)
    ours: Mapping[str, Any] = {
        "GRID_EXECUTION_ID": {"value": spec.id},
        "GRID_BASE_URL": {"value": spec.base_url},
        **{name: {"value": path} for name, path in places(spec).items()},
        "POD_IP": {"valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        **listening.variables(spec),
        **more,
        **{name: {"value": value} for name, value in of_jupyter.items() if name not in spec.environment.variables},
    }
    names = spec.job.environment if spec.job else ()
    of_job = {name: _from_secret(spec.object_name, f"{_JOB_KEY_PREFIX}{name}") for name in names}
    theirs = {
        name: _from_secret(spec.object_name, f"{_KEY_PREFIX}{name}") if _is_kept(value) else {"value": value}
        for name, value in spec.environment.variables.items()
    }
    visible = [secret.name for secret in spec.secrets if not secret.is_file]
    stored = {name: _from_secret(stored_secrets_name(spec), name) for name in visible}
    chosen = {**theirs, **stored, **of_job, **ours}
    return [{"name": name, **chosen[name]} for name in {**ours, **of_job, **stored, **chosen}]


def _is_kept(value: str) -> bool:
    return not _REFERENCE.search(value)


def _from_secret(secret: str, key: str) -> dict[str, Any]:
    return {"valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
