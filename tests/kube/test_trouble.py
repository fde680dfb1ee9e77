"""Kinds of trouble with the API server, in words."""

import pytest

from grid.core.errors import ClusterUnavailable, Expired, GridError, NotAllowed, TooManyRequests
from grid.kube.errors import Status, error_of
from grid.kube.trouble import STARTING_SECONDS, ClusterTrouble, TroubleJudge, sentence_of, trouble_of

ACCOUNT = 'User "system:serviceaccount:compute-grid-system:web"'


def forbidden(rest: str) -> GridError:
    return error_of(403, Status(message=f"it is forbidden: {ACCOUNT} cannot {rest}"))


@pytest.mark.parametrize(
    ("error", "trouble", "words"),
    [
        (
            forbidden('list resource "pods" in API group "" at the cluster scope'),
            ClusterTrouble.REFUSED,
            "The right to list pods in the whole cluster is missing: an admin of the cluster has to apply deploy/access.yaml.",
        ),
        (
            forbidden('watch resource "deployments" in API group "apps" in the namespace "compute-grid"'),
            ClusterTrouble.REFUSED,
            "The right to watch deployments.apps in compute-grid is missing: an admin of the cluster has to apply deploy/access.yaml.",
        ),
        (
            NotAllowed("denied by policy."),
            ClusterTrouble.REFUSED,
            "The API server refuses us: denied by policy. An admin of the cluster has to apply deploy/access.yaml.",
        ),
        (
            error_of(401, Status()),
            ClusterTrouble.REFUSED,
            "The cluster does not accept our credentials; they may have expired.",
        ),
        (
            error_of(429, Status(), {"Retry-After": "12"}),
            ClusterTrouble.THROTTLED,
            "The API server has too many requests (HTTP 429) and asks us to wait 12 s.",
        ),
        (Expired("too old"), ClusterTrouble.EXPIRED, "too old"),
        (ClusterUnavailable("Refused."), ClusterTrouble.SILENT, "Refused."),
        (
            TooManyRequests("busy"),
            ClusterTrouble.THROTTLED,
            "The API server has too many requests (HTTP 429) and asks us to wait 1 s.",
        ),
    ],
)
def test_error_has_kind_and_sentence(error: GridError, trouble: ClusterTrouble, words: str) -> None:
    assert (trouble_of(error), sentence_of(error)) == (trouble, words)


def test_refusals_after_silence_are_those_of_a_server_that_starts() -> None:
    """For as long as a start may take; then the rights are missing."""
    judge, refusal = TroubleJudge(), NotAllowed("no")
    judge.judge(ClusterUnavailable("gone"), 100.0)
    for now in (110.0, 109.9 + STARTING_SECONDS):
        sentence, trouble = judge.judge(refusal, now)
        assert (trouble, sentence.partition(":")[0]) == (ClusterTrouble.SILENT, "The API server starts")
        assert judge.is_starting
    assert judge.judge(refusal, 110.0 + STARTING_SECONDS) == (sentence_of(refusal), ClusterTrouble.REFUSED)


@pytest.mark.parametrize("was_silent", [False, True])
def test_refusal_of_a_server_that_has_answered_is_a_missing_right(was_silent: bool) -> None:
    judge, refusal = TroubleJudge(), NotAllowed("no")
    if was_silent:
        judge.silent()
        judge.answered()
    assert judge.judge(refusal, 100.0) == (sentence_of(refusal), ClusterTrouble.REFUSED)
    assert not judge.is_starting
