"""Names a pod's volume claims by what they hold; pure."""

from grid.core.translation import gettext as _
from grid.kube.constraints import PodVolume
from grid.kube.objects import Pod

# The volumes of our own pods (`grid.executions.storage`).
OURS = {"project": _("the project's files"), "home": _("the files of HOME")}


def claim_words(volume: PodVolume, claim_name: str) -> str:
    """Return "the project's files", "the scratch volume cache" or "the volume claim data"."""
    if volume.ephemeral is not None:
        return _("the scratch volume {name}", name=volume.name)
    return OURS.get(volume.name) or _("the volume claim {name}", name=claim_name)


def claims_in_words(pod: Pod, message: str) -> list[str]:
    """Return the pod's claims that the message names, or all of them when it names none."""
    names = {volume.claim_of(pod.metadata.name): volume for volume in pod.spec.volumes}
    named = {name: volume for name, volume in names.items() if f'"{name}"' in message}
    return [claim_words(volume, name) for name, volume in (named or names).items()]
