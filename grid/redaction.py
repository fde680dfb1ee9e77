"""Takes secrets out of what is given to others, such as a support bundle; pure.

What is known to be secret goes wherever it stands. Beyond that, a value goes where its place says what it is: variables of containers,
Secrets, passwords in URLs, and what follows the name of a password or token.
"""

import re
from collections.abc import Collection, Iterable
from typing import Any

from grid.kube.objects import RawObject

HIDDEN = "(hidden)"
_LEAST = 6  # shorter ones are not looked for: "on" and "2024" stand everywhere
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_NAMED = r"[\w.-]*(?:password|passwd|pwd|secret|token|credential|api[_-]?key|access[_-]?key|private[_-]?key)[\w.-]*"
_VALUE = r"(\"[^\"\n]*\"|'[^'\n]*'|[^\s\"',;&]+)"
_PATTERNS = (
    (re.compile(r"(?<=://)[^/\s@'\"]+(?=@)"), HIDDEN),
    (re.compile(r"(?i)([?&](?:[\w-]*sig|[\w-]*signature|code)=)[^&\s'\"]+"), rf"\1{HIDDEN}"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}"), rf"\1 {HIDDEN}"),
    (re.compile(rf"(?i)(\b{_NAMED}[\"']?\s*[=:]\s*|--?{_NAMED}\s+){_VALUE}"), rf"\1{HIDDEN}"),
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), HIDDEN),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{4,}\.[\w-]*"), HIDDEN),  # a JSON web token
    (re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_\w{20,}|\bglpat-[\w-]{20,}|\bhf_\w{20,}"), HIDDEN),
)


_FLAG = re.compile(rf"(?i)--?{_NAMED}")


class Redactor:
    """Takes secrets out of texts and objects; `known` are values that must never be seen."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        parts = {part for value in known for part in (value, *value.splitlines()) if len(part.strip()) >= _LEAST}
        found = sorted(parts, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, found))) if found else None

    def text(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        for pattern, instead in _PATTERNS:
            text = pattern.sub(instead, text)
        return text

    def object(self, obj: RawObject) -> RawObject:
        """Return the object without managedFields, without what `kubectl apply` keeps, and without values of variables and Secrets."""
        shown: RawObject = self._plain(obj)
        metadata = shown.get("metadata") or {}
        metadata.pop("managedFields", None)
        (metadata.get("annotations") or {}).pop(LAST_APPLIED, None)
        if shown.get("kind") == "Secret":
            for field in ("data", "stringData"):
                if shown.get(field):
                    shown[field] = dict.fromkeys(shown[field], HIDDEN)
        return shown

    def _plain(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            # A flag and its value are two arguments of a command.
            flags = [False, *(isinstance(one, str) and _FLAG.fullmatch(one) is not None for one in value)]
            return [
                HIDDEN if follows and isinstance(one, str) else self._plain(one)
                for follows, one in zip(flags, value, strict=False)
            ]
        if not isinstance(value, dict):
            return value
        made = {name: self._plain(one) for name, one in value.items()}
        if isinstance(made.get("env"), list):
            made["env"] = [_without_value(one) for one in made["env"]]
        for name in made:
            if isinstance(made[name], str) and re.fullmatch(_NAMED, name, re.IGNORECASE):
                made[name] = made[name] if _is_reference(name) else HIDDEN
        return made


_REFERENCES: Collection[str] = ("secretname", "automountserviceaccounttoken", "serviceaccounttoken")


def _is_reference(name: str) -> bool:
    """Return whether it names a Secret, and is none."""
    return name.lower() in _REFERENCES


def _without_value(variable: Any) -> Any:
    if isinstance(variable, dict) and variable.get("value"):
        return {**variable, "value": HIDDEN}
    return variable
