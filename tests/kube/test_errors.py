"""Foreign errors in, ours out: one kind for each decision, and nothing secret in any message."""

import json
import ssl

import aiohttp
import pytest

from grid.core.errors import ClusterUnavailable, Expired, GridError, NotAllowed, Rejected, TooManyRequests
from grid.kube.errors import answer_of, decode_status, error_of, translated


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
    error = error_of(404, decode_status(b'{"message":"' + b"x" * 100_000 + b'"}'))
    assert len(str(error)) <= 500


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
