"""What a person is told about volumes, ConfigMaps and Secrets that are missing or cannot be mounted."""

from tests.diagnosis.rule_examples import EXAMPLES
from tests.diagnosis.situations import Case, assert_told_as_stored, event_saying, on_a_node

CREATING = on_a_node({"waiting": {"reason": "ContainerCreating"}})


def config(message: str) -> dict[str, object]:
    return on_a_node({"waiting": {"reason": "CreateContainerConfigError", "message": message}})


def mount(name: str, message: str, reason: str = "FailedMount") -> Case:
    return Case(name, CREATING, [event_saying(reason, message)])


def of_rules(table: str, reason: str = "FailedMount") -> list[Case]:
    return [mount(key, message, reason) for key, (message, _) in EXAMPLES[f"mounts.{table}"].items()]


CASES = [
    Case("ConfigMap missing", config('configmap "settings" not found')),
    Case("Secret missing", config('secret "token" not found')),
    Case("key of a ConfigMap missing", config("couldn't find key a.b in ConfigMap compute-grid/settings")),
    Case("runs as root", config("container has runAsNonRoot and image will run as root (pod: ...)")),
    Case("cache not there yet", config("failed to sync secret cache: timed out waiting for the condition")),
    mount(
        "cache of a volume not there yet",
        'MountVolume.SetUp failed for volume "files" : failed to sync configmap cache: timed out waiting for the condition',
    ),
    *of_rules("MISSING"),
    mount(
        "key of a volume missing",
        'MountVolume.SetUp failed for volume "certs" : references non-existent secret key: ca.crt',
    ),
    mount(
        "project's files not mounted",
        "Unable to attach or mount volumes: unmounted volumes=[project], unattached volumes=[project home]: timed out",
    ),
    mount("home not mounted", "Unable to attach or mount volumes: unmounted volumes=[home project]: timed out"),
    mount(
        "other volume not attached", 'AttachVolume.Attach failed for volume "scratch" : rpc error', "FailedAttachVolume"
    ),
    *of_rules("WHY_NOT_MOUNTED"),
    *of_rules("ATTACHED", "FailedAttachVolume"),
    mount(
        "project in use",
        'Multi-Attach error for volume "project" Volume is already used by pod(s) other',
        "FailedAttachVolume",
    ),
    mount(
        "volume in use by several pods",
        'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) a, b and 1 pod(s) in different namespaces',
        "FailedAttachVolume",
    ),
]


def test_the_whole_words_are_as_stored() -> None:
    assert_told_as_stored("words-of-mounts", CASES)
