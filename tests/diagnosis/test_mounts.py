"""What a person is told about volumes, ConfigMaps and Secrets that are missing or cannot be mounted."""

import pytest

from tests.diagnosis.situations import Case, assert_explained, assert_told_as_stored, on_a_node, said

CREATING = on_a_node({"waiting": {"reason": "ContainerCreating"}})


def config(message: str) -> dict[str, object]:
    return on_a_node({"waiting": {"reason": "CreateContainerConfigError", "message": message}})


def mount(name: str, message: str, code: str, words: str, reason: str = "FailedMount") -> Case:
    return Case(name, CREATING, code, words, [said(reason, message)])


CASES = [
    Case("ConfigMap missing", config('configmap "settings" not found'), "config", "ConfigMap settings does not exist."),
    Case("Secret missing", config('secret "token" not found'), "config", "Secret token does not exist."),
    Case(
        "key missing",
        config("couldn't find key user in Secret compute-grid/token"),
        "config",
        "Secret token has no key user.",
    ),
    Case(
        "key of a ConfigMap missing",
        config("couldn't find key a.b in ConfigMap compute-grid/settings"),
        "config",
        "ConfigMap settings has no key a.b.",
    ),
    Case(
        "runs as root",
        config("container has runAsNonRoot and image will run as root (pod: ...)"),
        "config",
        "its image runs as root",
    ),
    Case(
        "cache not there yet",
        config("failed to sync secret cache: timed out waiting for the condition"),
        "preparing",
        "The node has not read the Secret yet; it waits for the API server.",
    ),
    mount(
        "cache of a volume not there yet",
        'MountVolume.SetUp failed for volume "files" : failed to sync configmap cache: timed out waiting for the condition',
        "preparing",
        "The node has not read the ConfigMap for volume files yet",
    ),
    mount(
        "ConfigMap of a volume missing",
        'MountVolume.SetUp failed for volume "files" : configmap "settings" not found',
        "config",
        "ConfigMap settings does not exist, so volume files",
    ),
    mount(
        "Secret of a volume missing",
        'MountVolume.SetUp failed for volume "certs" : secret "tls" not found',
        "config",
        "Secret tls does not exist, so volume certs",
    ),
    mount(
        "key of a volume missing",
        'MountVolume.SetUp failed for volume "certs" : references non-existent secret key: ca.crt',
        "config",
        "The Secret of volume certs has no key ca.crt, so the volume cannot be mounted.",
    ),
    mount(
        "key of a ConfigMap's volume missing",
        'MountVolume.SetUp failed for volume "files" : configmap references non-existent config key: a.b',
        "config",
        "The ConfigMap of volume files has no key a.b",
    ),
    mount(
        "project's files not mounted",
        "Unable to attach or mount volumes: unmounted volumes=[project], unattached volumes=[project home]: timed out",
        "volume_mount",
        "The project's files cannot be attached to the node yet.",
    ),
    mount(
        "home not mounted",
        "Unable to attach or mount volumes: unmounted volumes=[home project]: timed out",
        "volume_mount",
        "The files of HOME cannot be attached",
    ),
    mount(
        "other volume not attached",
        'AttachVolume.Attach failed for volume "scratch" : rpc error',
        "volume_mount",
        "Volume scratch cannot be attached to the node yet.",
        "FailedAttachVolume",
    ),
    mount("no volume named", "timed out waiting for the condition", "volume_mount", "A volume cannot be attached"),
    mount(
        "file server silent",
        'MountVolume.SetUp failed for volume "pvc-1" : mount failed: exit status 32\nmount.nfs: Connection timed out',
        "volume_mount",
        "Volume pvc-1 cannot be attached to the node yet: the file server does not answer.",
    ),
    mount(
        "file server refuses",
        'MountVolume.SetUp failed for volume "project" : mount.nfs: access denied by server while mounting',
        "volume_mount",
        "the file server refuses access.",
    ),
    mount(
        "no driver",
        'MountVolume.MountDevice failed for volume "pvc-1" : driver name nfs.csi.k8s.io not found in the list of registered CSI drivers',
        "volume_mount",
        "the storage driver nfs.csi.k8s.io does not run",
    ),
    mount(
        "file system broken",
        'MountVolume.MountDevice failed for volume "pvc-1" : mount: wrong fs type, bad option, bad superblock on /dev/sdb',
        "volume_mount",
        "its file system cannot be read.",
    ),
    mount(
        "project in use",
        'Multi-Attach error for volume "project" Volume is already used by pod(s) other',
        "volume_mount",
        "The project's files are in use on another node by pod other, and such a volume",
        "FailedAttachVolume",
    ),
    mount(
        "volume in use by several pods",
        'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) a, b and 1 pod(s) in different namespaces',
        "volume_mount",
        "Volume pvc-1 is in use on another node by pods a and b, and",
        "FailedAttachVolume",
    ),
    mount(
        "volume in use in another namespace",
        'Multi-Attach error for volume "pvc-1" Volume is already used by 2 pod(s) in different namespaces',
        "volume_mount",
        "by 2 pods of another namespace",
        "FailedAttachVolume",
    ),
    mount(
        "volume still attached",
        'Multi-Attach error for volume "pvc-1" Volume is already exclusively attached to one node and can\'t be attached to another',
        "volume_mount",
        "Volume pvc-1 is still attached to another node",
        "FailedAttachVolume",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_volume_or_reference_that_fails_is_named(case: Case) -> None:
    assert_explained(case)


def test_the_whole_words_are_as_stored() -> None:
    assert_told_as_stored("words-of-mounts", CASES)
