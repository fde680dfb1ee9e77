"""Names a pod's volume claims by what they hold; pure."""

from grid.kube.constraints import PodVolume
from grid.kube.objects import Pod

# The volumes of our own pods (`grid.launch.storage`).
OURS = {"project": "the project's files", "home": "the files of HOME"}


def claim_words(volume: PodVolume, claim_name: str) -> str:
    """Return "the project's files", "the scratch volume cache" or "the volume claim data"."""
    if volume.ephemeral is not None:
        return f"the scratch volume {volume.name}"
    return OURS.get(volume.name) or f"the volume claim {claim_name}"


def claims_in_words(pod: Pod, message: str) -> list[str]:
    """Return the pod's claims that the message names, or all of them when it names none."""
    names = {volume.claim_of(pod.metadata.name): volume for volume in pod.spec.volumes}
    named = {name: volume for name, volume in names.items() if f'"{name}"' in message}
    return [claim_words(volume, name) for name, volume in (named or names).items()]
