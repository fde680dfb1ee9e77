"""What every answer says: a Content-Security-Policy by which no script runs but the tags of our templates, which carry the answer's nonce,
and that no cache may store it."""

import re
from typing import Any

SCRIPT = re.compile(r"<script\b[^>]*>")
STRICT = {
    "default-src": "'none'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "font-src": "'self'",
    "form-action": "'self' http://localhost:8001 http://*.localhost:8001",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}


def policy_of(answer: Any) -> dict[str, str]:
    rules = (rule.strip().partition(" ") for rule in answer["Content-Security-Policy"].split(";"))
    return {name: values for name, _, values in rules}


def nonce_of(answer: Any) -> str:
    """The nonce that the policy allows; "" when it allows no script at all."""
    match = re.fullmatch(r"(?:'nonce-([\w+/=]{20,})')?", policy_of(answer)["script-src"])
    assert match, policy_of(answer)["script-src"]
    return match[1] or ""


def check_policy(answer: Any) -> None:
    """Fail for an answer without the policy, and for a script in it that the policy does not allow. A file of a project has a stricter
    one."""
    if answer["Content-Security-Policy"] == "default-src 'none'; sandbox":
        assert answer["Content-Disposition"].startswith("attachment")
        return
    assert STRICT.items() <= policy_of(answer).items()
    nonce = nonce_of(answer)
    for tag in [] if answer.streaming else SCRIPT.findall(answer.content.decode(errors="replace")):
        assert nonce
        assert f'nonce="{nonce}"' in tag
        assert " src=" in tag


def check_unstored(answer: Any, path: str) -> None:
    """Fail for an answer that a cache may store, unless it is the same for everybody."""
    if not path.startswith("/script-texts/"):
        assert answer.get("Cache-Control") == "no-store, private", path
