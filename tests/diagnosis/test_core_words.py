"""What drivers of storage and container runtimes say of a cause is in the sentence, however many callers put words before it."""

from datetime import timedelta
from typing import Any

import pytest

from grid.core.wording import folded
from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.rules import core_words, most_telling
from tests.diagnosis.situations import assert_answers_as_stored, event_saying, explain, on_a_node
from tests.support.builders import MOMENT, condition

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
AZURE = (
    'failed to provision volume with StorageClass "disk": rpc error: code = Internal desc = PUT https://management.azure.com/disks/1\n'
    "-----\nRESPONSE 403: 403 Forbidden\nERROR CODE: AuthorizationFailed\n-----\n"
    '{\n  "error": {\n    "code": "AuthorizationFailed",\n    "message": "The client has no right",\n    "target": "disk"\n  }\n}\n-----\n'
)
RAW = 'desc = Retriable: false, HTTPStatusCode: 403, RawError: {"error":{"code":"A","message":"Disallowed: \'[{\\"name\\":1}]\'."}}'
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
    return explain(waiting, *(event_saying(*each) for each in events))


@pytest.mark.parametrize(
    ("message", "core"),
    [
        (NOT_ATTACHED, "volume pvc-1 is not ready for workloads"),
        (CIFS, "mount error(13): Permission denied"),
        (EFS, "mount.nfs4: access denied"),
        (NO_DEVICE, 'error mounting "/dev/fuse" to rootfs: no such device'),
        (AZURE, "The client has no right"),
        (RAW, "Disallowed: '[{\"name\":1}]'"),
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


def of_mounts() -> dict[str, Diagnosis]:
    attach, mount = ("FailedAttachVolume", NOT_ATTACHED), ("FailedMount", DENIED)
    causes = {
        "no secret": "rpc error: code = Unknown desc = failed to mount secrets store objects for pod p, err: no secret",
        "no such folder": "mount failed\nOutput: mount.nfs: mounting nas:/a failed, reason given by server: No such file or directory",
        "an image in use": "rpc error: code = Internal desc = rbd image pool/csi-vol-1 is still being used",
    }
    setup = {why: ("FailedMount", f'MountVolume.SetUp failed for volume "v" : {text}') for why, text in causes.items()}
    return {
        "an attach that fails for 2 minutes": explained(attach, minutes=2),
        "an attach that fails for 14 minutes": explained(attach, minutes=14),
        "a mount that hangs, and its consequence": explained(("FailedMount", TIMED_OUT), ("FailedMount", PENDING)),
        "an attach that failed and succeeded, and a mount that fails": explained(attach, ATTACHED, mount),
        "an attach that failed and succeeded": explained(attach, ATTACHED),
        "a change of owners for 20 minutes": explained((OWNERSHIP, OWNED), minutes=20),
        "a change of owners, and the kubelet's summary": explained(
            (OWNERSHIP, OWNED), ("FailedMount", SUMMARY), minutes=20
        ),
        "a change of owners without a number": explained(
            (OWNERSHIP, "Setting volume ownership for 0b4e/volumes is taking longer than expected")
        ),
        "a change of owners, and a mount that fails": explained((OWNERSHIP, OWNED), mount),
        **{f"a mount that fails: {why}": explained(each) for why, each in setup.items()},
    }


def of_starts() -> dict[str, Diagnosis]:
    reserved: dict[str, Any] = {"reason": "CreateContainerError", "message": RESERVED}
    no_address = "Failed to create pod sandbox: failed to assign an IP address to container"
    policy = "policy require-ro-rootfs fail: Root filesystem must be read-only"
    creating = on_a_node({"waiting": {"reason": "ContainerCreating"}})
    harmless = {
        reason: explain(creating, event_saying(reason, policy) | {"type": "Warning"})
        for reason in ("PolicyViolation", "MissingClusterDNS")
    }
    return {
        "the name is reserved": explained(**reserved),
        "the name is reserved, after a timeout": explained(("Failed", CREATED_LATE), **reserved),
        "the name is reserved, after a cause": explained(("Failed", "Error: mkdir /run/a: disk is full"), **reserved),
        **{f"a harmless warning: {reason}": diagnosis for reason, diagnosis in harmless.items()},
        "no sandbox, and a reserved name since": explained(
            ("FailedCreatePodSandBox", no_address), ("FailedCreatePodSandBox", RESERVED)
        ),
    }


def test_causes_under_many_frames_are_told_as_stored() -> None:
    assert_answers_as_stored("words-of-causes", (of_mounts() | of_starts()).items())
