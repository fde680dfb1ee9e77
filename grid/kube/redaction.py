"""Takes secrets out of what is given to others, such as a support bundle; pure. What is known to be secret goes wherever it stands, else
where its place says so: variables of containers, Secrets, passwords in URLs, and what follows the name of a password or token."""

from collections.abc import Iterable
from typing import Any

from grid.core.regexes import Expression, RepeatedExpression
from grid.kube.objects import RawObject

HIDDEN = "(hidden)"
_LEAST = 6  # shorter ones are not looked for: "on" and "2024" stand everywhere
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# A letter of any language, a digit, or one of _.- but no blank: what is none of these characters.
_IN_A_NAME = r"[^\x00-,/:-@\[-^`{-\x{A0}\x{1680}\x{2000}-\x{206F}\x{3000}]"
_BLANK = r"[\s\x0b\x1c-\x1f\x{85}\pZ]"
_NAMED = rf"{_IN_A_NAME}*(?:password|passwd|pwd|secret|token|credential|api[_-]?key|access[_-]?key|private[_-]?key){_IN_A_NAME}*"
_VALUE = r"(\"[^\"\n]*\"|'[^'\n]*'|[^\s\"',;&]+)"
_PATTERNS = tuple(
    (RepeatedExpression(pattern), instead)
    for pattern, instead in (
        (r"://[^/\s@'\"]+@", f"://{HIDDEN}@"),
        (rf"(?i)([?&](?:{_IN_A_NAME}*(?:sig|signature)|code)=)[^&\s'\"]+", rf"\1{HIDDEN}"),
        (rf"(?i)\b(bearer|basic){_BLANK}+[\w.~+/=-]{{8,}}", rf"\1 {HIDDEN}"),
        (rf"(?i)(\b{_NAMED}[\"']?{_BLANK}*[=:]{_BLANK}*|--?{_NAMED}{_BLANK}+){_VALUE}", rf"\1{HIDDEN}"),
        (r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)", HIDDEN),
        (r"\beyJ[\w-]{8,}\.[\w-]{4,}\.[\w-]*", HIDDEN),  # a JSON web token
        (r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_\w{20,}|\bglpat-[\w-]{20,}|\bhf_\w{20,}", HIDDEN),
    )
)
_REFERENCES = ("secretname", "automountserviceaccounttoken", "serviceaccounttoken")  # they name a Secret, and are none
_FLAG, _NAME = Expression(rf"(?i)--?{_NAMED}"), Expression(rf"(?i){_NAMED}")


class Redactor:
    """Takes secrets out of texts and objects; `known` are values that must never be seen."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        parts = {part for value in known for part in (value, *value.splitlines()) if len(part.strip()) >= _LEAST}
        # Of two of which one begins the other, all of the longer goes.
        self._known = sorted(parts, key=len, reverse=True)

    def text(self, text: str) -> str:
        """Return the text without secrets. No line is cut before, because a part of a secret would not be known as one."""
        for value in self._known:
            text = text.replace(value, HIDDEN)
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
            flags = [False, *(isinstance(item, str) and _FLAG.fullmatch(item) is not None for item in value)]
            return [
                HIDDEN if follows and isinstance(item, str) else self._plain(item)
                for follows, item in zip(flags, value, strict=False)
            ]
        if not isinstance(value, dict):
            return value
        made = {name: self._plain(field) for name, field in value.items()}
        if isinstance(made.get("env"), list):
            for variable in made["env"]:
                if isinstance(variable, dict) and variable.get("value"):
                    variable["value"] = HIDDEN
        for name in made:
            if isinstance(made[name], str) and _NAME.fullmatch(name) and name.lower() not in _REFERENCES:
                made[name] = HIDDEN
        return made
