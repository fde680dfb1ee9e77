"""Why the API server refused an object, from its own texts."""

import pytest

from grid.diagnosis.refusals import explain_refusal

QUOTA = (
    'pods "job-1" is forbidden: exceeded quota: team, requested: pods=1,requests.cpu=4, used: pods=10,requests.cpu=13, '
    "limited: pods=10,requests.cpu=16"
)


@pytest.mark.parametrize(
    ("message", "code", "sentence"),
    [
        (
            QUOTA,
            "quota",
            (
                "The quota “team” of the namespace has too little left: 10 of 10 pods are in use and this takes 1 pod; 13 cores of "
                "16 cores (requests.cpu) are in use and this takes 4 cores (requests.cpu)."
            ),
        ),
        (
            'pods "a" is forbidden: failed quota: team: must specify limits.cpu,limits.memory',
            "quota",
            "The quota “team” of the namespace takes only pods that say their limits.cpu and limits.memory.",
        ),
        (
            'persistentvolumeclaims "a" is forbidden: maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 4Gi',
            "limit_range",
            "A limit range of the namespace allows at most 1 GiB of storage for a volume claim, and the request is 4 GiB of storage.",
        ),
        (
            'pods "a" is forbidden: maximum memory usage per Container is much, but limit is more',
            "limit_range",
            "A limit range of the namespace allows at most much of memory for a container, and the limit is more of memory.",
        ),
        (
            'pods "a" is forbidden: maximum memory usage per Container is 1Gi, but limit is 4Gi',
            "limit_range",
            "A limit range of the namespace allows at most 1 GiB of memory for a container, and the limit is 4 GiB of memory.",
        ),
        (
            (
                'pods "a" is forbidden: [minimum cpu usage per Pod is 2, but request is 1, maximum memory usage per Pod is 1Gi, '
                "but limit is 2Gi]"
            ),
            "limit_range",
            (
                "A limit range of the namespace allows at least 2 cores for a pod, and the request is 1 core. "
                "A limit range of the namespace allows at most 1 GiB of memory for a pod, and the limit is 2 GiB of memory."
            ),
        ),
        (
            'pods "a" is forbidden: cpu max limit to request ratio per Container is 1500m, but provided ratio is 4.000000',
            "limit_range",
            "A limit range of the namespace allows a limit of cpu of at most 1.5 times the request, and the tier's is 4 times.",
        ),
        (
            'pods "a" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true',
            "pod_security",
            "Pod security of the namespace (restricted:latest) forbids it: runAsNonRoot != true.",
        ),
        (
            'admission webhook "images.example.com" denied the request: only images of our registry',
            "webhook",
            "The cluster's rule images.example.com forbids it: only images of our registry.",
        ),
    ],
)
def test_each_known_refusal_is_said_in_words(message: str, code: str, sentence: str) -> None:
    reason = explain_refusal(message)
    assert reason is not None
    assert (reason.code, reason.sentence) == (code, sentence)
    assert reason.next_step
    assert reason.for_good is not (code == "quota" and "exceeded" in message)


def test_an_unknown_refusal_is_left_to_its_own_words() -> None:
    assert explain_refusal("the moon is full") is None
    assert explain_refusal("") is None
