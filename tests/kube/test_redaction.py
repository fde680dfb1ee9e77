"""What is taken out of texts and objects that are given away, and what stays."""

import json

import pytest

from grid.kube.redaction import HIDDEN, Redactor

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
