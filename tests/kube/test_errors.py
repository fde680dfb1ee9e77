"""Foreign errors in, ours out, in words, with nothing secret in any message, text or object that is given away."""

import json
import ssl

import aiohttp
import pytest

from grid.core.errors import ClusterUnavailable, Expired, GridError, NotAllowed, Rejected, TooManyRequests
from grid.kube.errors import Status, answer_of, decode_status, error_of, translated
from grid.kube.redaction import HIDDEN, Redactor
from grid.kube.trouble import STARTING_SECONDS, ClusterTrouble, TroubleJudge, sentence_of, trouble_of


def test_problems_of_a_refused_object_have_their_paths() -> None:
    body = b"""{"kind":"Status","reason":"Invalid","message":"Pod is invalid","code":422,"details":{"causes":[
        {"reason":"FieldValueInvalid","message":"must be lower case","field":"metadata.name"},
        {"reason":"FieldValueRequired","message":"Required value","field":"spec.containers"}]}}"""
    error = error_of(422, decode_status(body))
    assert isinstance(error, Rejected)
    assert [(problem.path, problem.message, problem.code) for problem in error.problems] == [
        ("metadata.name", "must be lower case", "FieldValueInvalid"),
        ("spec.containers", "Required value", "FieldValueRequired"),
    ]


@pytest.mark.parametrize("body", [b"", b"<html>", b"\xff\xfe", b'{"message": 7}', b'{"details": {"causes": null}}'])
def test_any_error_body_and_code_become_a_sentence(body: bytes) -> None:
    for code in (302, 400, 401, 403, 404, 409, 410, 418, 422, 429, 500, 503):
        error = error_of(code, decode_status(body))
        assert isinstance(error, GridError), code
        assert str(error).endswith((".", "?")), code


def test_unauthorized_forbidden_and_too_old_are_told_apart() -> None:
    assert "expired" in str(error_of(401, decode_status(b"{}")))
    forbidden = error_of(403, decode_status(b'{"message":"pods is forbidden: User \\"web\\" cannot list"}'))
    assert isinstance(forbidden, NotAllowed)
    assert "cannot list" in str(forbidden)
    assert isinstance(error_of(410, decode_status(b'{"message":"too old"}')), Expired)


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"Retry-After": "7"}, b"{}", 7.0),
        ({}, b'{"details":{"retryAfterSeconds":3}}', 3.0),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, b"{}", 1.0),
        ({}, b"{}", 1.0),
    ],
)
def test_retry_delay_is_taken_from_all_known_places(headers: dict[str, str], body: bytes, seconds: float) -> None:
    error = error_of(429, decode_status(body), headers)
    assert isinstance(error, TooManyRequests)
    assert error.retry_after == seconds


def test_a_long_message_is_trimmed() -> None:
    assert len(str(error_of(404, decode_status(b'{"message":"' + b"x" * 100_000 + b'"}')))) <= 500


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


@pytest.mark.parametrize(
    "foreign",
    [
        TimeoutError(),
        aiohttp.ClientPayloadError("secret"),
        aiohttp.InvalidURL("http://user:secret@x"),
        ssl.SSLError(1, "secret"),
        OSError("secret"),
    ],
)
def test_network_error_is_an_outage_with_chained_cause(foreign: Exception) -> None:
    with pytest.raises(ClusterUnavailable) as raised, translated("host:1"):
        raise foreign
    assert raised.value.__cause__ is foreign
    assert "secret" not in str(raised.value)


def test_our_own_errors_and_faults_pass() -> None:
    with pytest.raises(Expired), translated("host"):
        raise Expired("too old")
    with pytest.raises(KeyError), translated("host"):
        raise KeyError("a fault of ours is not an outage")


def test_error_keeps_the_words_of_the_server() -> None:
    causes = [{"reason": "FieldValueInvalid", "message": "Invalid value", "field": "spec.x"}]
    body = {"message": "it is invalid: " + "x" * 1000, "reason": "Invalid", "details": {"causes": causes}}
    answer = answer_of(error_of(422, decode_status(json.dumps(body).encode())))
    assert (answer.code, answer.reason, answer.message) == (422, "Invalid", body["message"])
    assert answer.details is not None
    assert answer.details.causes is not None
    assert answer.details.causes[0].field == "spec.x"
    page = answer_of(error_of(404, decode_status(b"<html>404 page not found</html>")))
    assert (page.code, page.reason, page.message) == (404, "", "The API server answered HTTP 404.")
    own = answer_of(ClusterUnavailable("It is away."))
    assert (own.code, own.message) == (0, "It is away.")


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


KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nabc\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("cloning https://bob:hunter22@git.example/x.git", "hunter22"),
        ("postgres://grid:p%40ss@db:5432/grid", "p%40ss"),
        ("pip install git+https://ghtoken123@git.example/x", "ghtoken123"),
        ("https://store.example/f?sv=1&sig=abc%2Bdef&x=1", "abc%2Bdef"),
        ("Authorization: Bearer abcdefghijkl", "abcdefghijkl"),
        ("curl -H 'authorization: Basic Zm9vOmJhcmJheg=='", "Zm9vOmJhcmJheg=="),
        ("login --password=hunter22 --user bob", "hunter22"),
        ("login --password hunter22 --user bob", "hunter22"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI", "wJalrXUtnFEMI"),
        ('{"api_key": "sk-123456"}', "sk-123456"),
        ("token: 'abc def'", "abc def"),
        (f"found\n{KEY}\nthere", "MIIEpAIBAAKCAQEA"),
        ("key AKIAIOSFODNN7EXAMPLE used", "AKIAIOSFODNN7EXAMPLE"),
        ("ghp_abcdefghijklmnopqrstuvwxyz0123", "ghp_abcdefghijklmnopqrstuvwxyz0123"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "eyJzdWIiOiIxIn0"),
        ("it said swordfish-42 twice: swordfish-42", "swordfish-42"),
        ("only its second line: ends-in-tears", "ends-in-tears"),
    ],
)
def test_a_secret_is_taken_out_of_a_text(text: str, secret: str) -> None:
    redacted = Redactor(["swordfish-42", "first\nends-in-tears"]).text(text)
    assert secret not in redacted
    assert HIDDEN in redacted


@pytest.mark.parametrize(
    "text",
    [
        "The program used more memory than its limit of 4 GiB and was ended.",
        "https://registry.example:5000/lab:4",
        "The program cannot be started: Secret token does not exist.",
        "password is wrong",
        "step 3: loss 0.25 at 10:20:30",
        "Normal  Scheduled  default-scheduler  Successfully assigned grid/run to node-a",
    ],
)
def test_harmless_text_stays(text: str) -> None:
    assert Redactor(["on", "short"]).text(text) == text


def test_object_keeps_its_shape_without_secret_values() -> None:
    pod = {
        "kind": "Pod",
        "metadata": {
            "name": "run",
            "managedFields": [{}],
            "annotations": {
                "note": "https://a:planted-1@b/",
                "kubectl.kubernetes.io/last-applied-configuration": "planted-2",
            },
        },
        "spec": {
            "containers": [
                {
                    "name": "run",
                    "args": ["--token", "planted-3", "--rate=0.1", "--api-key=planted-4", "--db-password", "planted-6"],
                    "env": [
                        {"name": "RATE", "value": "planted-5"},
                        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "stored", "key": "k"}}},
                    ],
                }
            ],
            "volumes": [{"name": "s", "secret": {"secretName": "stored"}}],
        },
    }
    shown = Redactor(["planted-3"]).object(pod)
    text = json.dumps(shown)
    assert not [number for number in range(1, 7) if f"planted-{number}" in text]
    assert shown["spec"]["volumes"] == pod["spec"]["volumes"]  # type: ignore[index]
    assert shown["spec"]["containers"][0]["env"][1] == pod["spec"]["containers"][0]["env"][1]  # type: ignore[index]
    assert "--rate=0.1" in text
    assert "managedFields" not in text
    secret = {"kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "cGxhbnRlZA=="}}
    assert Redactor().object(secret)["data"] == {"a": HIDDEN}
