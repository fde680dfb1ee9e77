"""The rules for names, label keys and label values, with Kubernetes' error messages.

Each function returns the list of problems, empty when all is well.
"""

from grid.core.regexes import Expression

_SUBDOMAIN = Expression(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_1123 = Expression(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED = Expression(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_VALUE = Expression(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_CONFIG_KEY = Expression(r"[-._a-zA-Z0-9]+")

_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with "
    "an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_1123_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
    "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_NAME_PART_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_CONFIG_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', "
    "regex used for validation is '[-._a-zA-Z0-9]+')"
)


_TOO_MANY_SLASHES = (
    "a valid label key must consist of alphanumeric characters, '-', '_' or '.', with an optional DNS subdomain prefix and '/' "
    "(e.g. 'example.com/MyName')"
)


def _longer(text: str, most: int, unit: str = "characters") -> list[str]:
    return [f"must be no more than {most} {unit}"] if len(text.encode()) > most else []


def subdomain_problems(name: str) -> list[str]:
    """Check a DNS subdomain, the form of most objects' names."""
    problems = _longer(name, 253)
    return problems if _SUBDOMAIN.fullmatch(name) else [*problems, _SUBDOMAIN_RULE]


def dns_label_problems(name: str) -> list[str]:
    """Check a DNS label, which may start with a digit: the form of names of namespaces, containers, volumes and services."""
    problems = _longer(name, 63)
    return problems if _LABEL_1123.fullmatch(name) else [*problems, _LABEL_1123_RULE]


def label_key_problems(key: str) -> list[str]:
    """Check a qualified name: an optional DNS prefix and a name part."""
    prefix, slash, name = key.rpartition("/")
    if slash and "/" in prefix:
        return [_TOO_MANY_SLASHES]
    problems: list[str] = []
    if slash:
        problems += [
            f"prefix part {problem}" for problem in (subdomain_problems(prefix) if prefix else ["must be non-empty"])
        ]
    if not name:
        return [*problems, "name part must be non-empty", _NAME_PART_RULE]
    problems += [f"name part {problem}" for problem in _longer(name, 63, "bytes")]
    if not _QUALIFIED.fullmatch(name):
        problems.append(_NAME_PART_RULE)
    return problems


def label_value_problems(value: str) -> list[str]:
    problems = _longer(value, 63, "bytes")
    return problems if _VALUE.fullmatch(value) else [*problems, _VALUE_RULE]


def config_key_problems(key: str) -> list[str]:
    problems = _longer(key, 253)
    return problems if _CONFIG_KEY.fullmatch(key) and key not in (".", "..") else [*problems, _CONFIG_KEY_RULE]
