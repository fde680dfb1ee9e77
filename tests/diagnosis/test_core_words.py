"""What drivers of storage and container runtimes say of a cause is in the sentence, however many callers put words before it."""

from datetime import timedelta
from typing import Any

import pytest

from grid.core.wording import folded
from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.pods import explain_pod
from grid.diagnosis.rules import core_words, most_telling
from grid.kube.objects import Event, Pod
from tests.diagnosis.situations import event_saying, on_a_node
from tests.support.builders import MOMENT, condition, decode

OF_VOLUME = 'MountVolume.MountDevice failed for volume "pvc-1" : rpc error: code = '
TIMED_OUT = f"{OF_VOLUME}DeadlineExceeded desc = context deadline exceeded"
PENDING = f"{OF_VOLUME}Aborted desc = an operation with the given Volume ID 0001-0009 already exists"
DENIED = f"{OF_VOLUME}Internal desc = rados: ret=-13, Permission denied"
SUMMARY = "Unable to attach or mount volumes: unmounted volumes=[data]: timed out waiting for the condition"
NOT_ATTACHED = 'AttachVolume.Attach failed for volume "pvc-1" : rpc error: code = Aborted desc = volume pvc-1 is not ready for workloads'
CIFS = (
    'MountVolume.SetUp failed for volume "nas" : mount failed: exit status 32\nMounting arguments: -t cifs\n'
    "Output: mount error(13): Permission denied\nRefer to the mount.cifs(8) manual page (e.g. man mount.cifs)\n"
)
EFS = (
    'MountVolume.SetUp failed for volume "fs" : rpc error: code = Internal desc = Could not mount "fs-1:/a": exit status 32\n'
    "Output: Could not start amazon-efs-mount-watchdog, unrecognized init system\nmount.nfs4: access denied"
)
NO_DEVICE = (
    "OCI runtime create failed: runc create failed: unable to start container process: error during container init: "
    'error mounting "/dev/fuse" to rootfs: no such device: unknown'
)
ATTACHED = ("SuccessfulAttachVolume", 'AttachVolume.Attach succeeded for volume "pvc-1"')
OWNERSHIP = "VolumePermissionChangeInProgress"
OWNED = "Setting volume ownership for 0b4e/volumes/kubernetes.io~csi, processed 240000 files"
CREATED_LATE = "Error: context deadline exceeded"
RESERVED = 'failed to reserve container name "run_p_0": name "run_p_0" is reserved for "9d1c0a"'


def explained(
    *events: tuple[str, str], minutes: float = 0, reason: str = "ContainerCreating", message: str = ""
) -> Diagnosis:
    """The diagnosis of a container that waits since so many minutes; the events are oldest first."""
    waiting: dict[str, Any] = on_a_node({"waiting": {"reason": reason, "message": message}})
    waiting["status"]["conditions"] = [condition("PodScheduled", "True", at=MOMENT - timedelta(minutes=minutes))]
    seen = [decode(event_saying(*each), Event) for each in events]
    return explain_pod(decode(waiting, Pod), seen, now=MOMENT)


@pytest.mark.parametrize(
    ("message", "core"),
    [
        (NOT_ATTACHED, "volume pvc-1 is not ready for workloads"),
        (CIFS, "mount error(13): Permission denied"),
        (EFS, "mount.nfs4: access denied"),
        (NO_DEVICE, 'error mounting "/dev/fuse" to rootfs: no such device'),
        (PENDING, ""),
        (SUMMARY, ""),
        ("timed out waiting for the condition", ""),
    ],
)
def test_core_words_are_what_follows_the_frames(message: str, core: str) -> None:
    assert core_words(message) == core


@pytest.mark.parametrize(
    ("messages", "cause"),
    [
        ([TIMED_OUT, PENDING], TIMED_OUT),
        ([DENIED, TIMED_OUT], DENIED),
        ([DENIED, SUMMARY], DENIED),
        ([DENIED, NOT_ATTACHED], NOT_ATTACHED),
        ([PENDING, SUMMARY], SUMMARY),
    ],
)
def test_older_cause_beats_newer_message_without_cause(messages: list[str], cause: str) -> None:
    assert most_telling(messages) == cause


def test_long_quotation_keeps_its_beginning_and_end() -> None:
    quotation = folded(f"the call failed: {'because of ' * 60}: the aggregate is full")
    assert quotation.startswith("the call failed: ")
    assert quotation.endswith(": the aggregate is full")
    assert len(quotation) == 450


def test_unknown_mount_failure_says_the_drivers_words() -> None:
    diagnosis = explained(("FailedAttachVolume", NOT_ATTACHED), minutes=2)
    assert diagnosis.sentence == (
        "Volume pvc-1 cannot be attached to the node yet: volume pvc-1 is not ready for workloads."
    )
    assert diagnosis.next_step == "If it lasts, ask an operator."


def test_lasting_mount_failure_is_no_longer_waited_for() -> None:
    diagnosis = explained(("FailedAttachVolume", NOT_ATTACHED), minutes=14)
    assert diagnosis.sentence.startswith("Volume pvc-1 cannot be attached to the node: ")
    assert diagnosis.next_step == "It is tried again, for 14 minutes so far: ask an operator to look at the storage."


def test_consequence_of_a_hanging_mount_is_no_cause() -> None:
    diagnosis = explained(("FailedMount", TIMED_OUT), ("FailedMount", PENDING))
    assert diagnosis.sentence == (
        "Volume pvc-1 cannot be mounted on the node yet: the storage does not answer in time."
    )
    assert diagnosis.evidence == (TIMED_OUT, PENDING)


def test_failed_attach_is_over_once_the_volume_is_attached() -> None:
    diagnosis = explained(("FailedAttachVolume", NOT_ATTACHED), ATTACHED, ("FailedMount", DENIED))
    assert diagnosis.sentence.endswith("mounted on the node yet: rados: ret=-13, Permission denied.")
    assert explained(("FailedAttachVolume", NOT_ATTACHED), ATTACHED).severity == "wait"


@pytest.mark.parametrize("later", [(), (("FailedMount", SUMMARY),)])
def test_change_of_ownership_is_waited_for(later: tuple[tuple[str, str], ...]) -> None:
    diagnosis = explained((OWNERSHIP, OWNED), *later, minutes=20)
    assert (diagnosis.code, diagnosis.severity, diagnosis.who) == ("preparing", "wait", "")
    assert diagnosis.sentence == (
        "The node changes the owner of all files of a volume before the start, 240,000 so far."
    )
    slow = explained((OWNERSHIP, "Setting volume ownership for 0b4e/volumes is taking longer than expected"))
    assert slow.sentence == "The node changes the owner of all files of a volume before the start."
    assert explained((OWNERSHIP, OWNED), ("FailedMount", DENIED)).severity == "problem"


@pytest.mark.parametrize(
    ("message", "who"),
    [
        ("rpc error: code = Unknown desc = failed to mount secrets store objects for pod p, err: no secret", "admin"),
        ("mount failed\nOutput: mount.nfs: mounting nas:/a failed, reason given by server: No such file or directory", "admin"),
        ("rpc error: code = Internal desc = rbd image pool/csi-vol-1 is still being used", "operator"),
    ],
)  # fmt: skip
def test_who_can_act_depends_on_the_mounts_cause(message: str, who: str) -> None:
    assert explained(("FailedMount", f'MountVolume.SetUp failed for volume "v" : {message}')).who == who


def test_reserved_name_is_no_cause_of_a_failed_container() -> None:
    reserved = explained(reason="CreateContainerError", message=RESERVED)
    late = explained(("Failed", CREATED_LATE), reason="CreateContainerError", message=RESERVED)
    assert reserved.sentence == late.sentence
    assert "container runtime is overloaded or hangs" in late.sentence
    assert "reserve" not in late.sentence
    full = explained(("Failed", "Error: mkdir /run/a: disk is full"), reason="CreateContainerError", message=RESERVED)
    assert full.sentence == "The program cannot be started: mkdir /run/a: disk is full."


@pytest.mark.parametrize("reason", ["PolicyViolation", "MissingClusterDNS"])
def test_harmless_warning_is_no_problem_of_start(reason: str) -> None:
    raw = event_saying(reason, "policy require-ro-rootfs fail: Root filesystem must be read-only") | {"type": "Warning"}
    waiting = decode(on_a_node({"waiting": {"reason": "ContainerCreating"}}), Pod)
    assert explain_pod(waiting, [decode(raw, Event)], now=MOMENT).severity == "wait"


def test_sandbox_failure_is_explained_by_its_older_cause() -> None:
    no_address = "Failed to create pod sandbox: failed to assign an IP address to container"
    diagnosis = explained(("FailedCreatePodSandBox", no_address), ("FailedCreatePodSandBox", RESERVED))
    assert "it has no free address for another pod" in diagnosis.sentence
