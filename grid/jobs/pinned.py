"""The environment of an earlier launch, for a run that repeats it with the very same image."""

import msgspec

from grid.core.regexes import Expression
from grid.executions.spec import EnvironmentSpec, ExecutionSpec

# How container runtimes name an image by its digest, which any node can pull again.
_BY_DIGEST = Expression(r"(?:docker-pullable://)?([a-z0-9._-]+(?::\d+)?(?:/[a-z0-9._-]+)*@sha256:[0-9a-f]{64})")


def environment_by_digest(stored: object, image_id: str) -> EnvironmentSpec | None:
    """Return the environment of an earlier launch, with the very image that ran where the kubelet named its digest; None when the stored
    spec cannot be read."""
    try:
        environment = msgspec.convert(stored, ExecutionSpec).environment
    except msgspec.ValidationError:
        return None
    ran = _BY_DIGEST.fullmatch(image_id)
    return msgspec.structs.replace(environment, image=ran[1]) if ran else environment
