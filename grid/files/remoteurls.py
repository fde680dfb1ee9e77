"""The URL of a remote repository: which ones are followed, and their parts (pure). People type them and programs get them, so a URL is put
together again from parts that cannot be an option, a credential, a local path, or a command of git or ssh."""

from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Literal

from grid.core.regexes import Expression
from grid.core.translation import gettext as _

LONGEST = 500
_SCHEMES = {"https": 443, "ssh": 22}
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?"
_HOST = Expression(rf"{_LABEL}(?:\.{_LABEL})*\.?")
_USER = Expression(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_PATH = Expression(r"[A-Za-z0-9._~+,=@:/%-]+")
_URL = Expression(r"(?i)(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<place>[^/]*)(?P<path>/.*)?")
_SHORT = Expression(r"(?P<user>[^@/:]+)@(?P<host>[^:/@\[\]]+):(?P<path>[^:].*)")  # as in git@host:group/name.git


@dataclass(frozen=True, slots=True)
class RemoteUrl:
    scheme: Literal["https", "ssh"]
    host: str
    port: int
    path: str
    user: str = ""  # only of SSH

    @property
    def text(self) -> str:
        user = f"{self.user}@" if self.user else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _SCHEMES[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{user}{host}{port}{self.path}"

    @property
    def is_ssh(self) -> bool:
        return self.scheme == "ssh"

    @property
    def known_host(self) -> str:
        return self.host if self.port == _SCHEMES["ssh"] else f"[{self.host}]:{self.port}"


def parse(text: str) -> RemoteUrl:
    """Return the URL. Raise ValueError with a sentence for the person who has typed it."""
    text = text.strip()
    if not text:
        raise ValueError(_("Enter the URL of the repository."))
    if len(text) > LONGEST:
        raise ValueError(_("A URL has at most {most} characters.", most=LONGEST))
    if text.startswith("-") or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError(_("A URL begins with no dash, and has no blanks and no special characters."))
    short = None if "://" in text else _SHORT.fullmatch(text)
    if short is not None:
        path = short["path"]
        return _checked("ssh", short["user"], short["host"], 22, path if path.startswith("/") else f"/{path}")
    match = _URL.fullmatch(text)
    scheme = match["scheme"].lower() if match else ""
    if match is None or scheme not in _SCHEMES:
        raise ValueError(_("Use https://host/path, ssh://git@host/path or git@host:path."))
    user, _at, place = match["place"].rpartition("@")
    if scheme == "https" and user:
        sentence = _("Leave user name and token out of the URL: whoever reads it would have them. They have fields.")
        raise ValueError(sentence)
    if scheme == "ssh" and ":" in user:
        raise ValueError(_("Leave the password out of the URL. SSH uses the key."))
    host, port = _host_and_port(place, _SCHEMES[scheme])
    return _checked(scheme, user, host, port, match["path"] or "")


def _host_and_port(place: str, default: int) -> tuple[str, int]:
    if place.startswith("["):
        host, closed, rest = place[1:].partition("]")
        if not closed:
            raise ValueError(_("An IPv6 address stands in brackets."))
    else:
        host, colon, rest = place.partition(":")
        rest = colon + rest
    if not rest:
        return host, default
    digits = rest[1:]
    if not (rest.startswith(":") and digits.isdecimal() and len(digits) <= 5 and 0 < int(digits) < 2**16):
        raise ValueError(_("The port is a number from 1 to 65535."))
    return host, int(digits)


def _checked(scheme: str, user: str, host: str, port: int, path: str) -> RemoteUrl:
    if not _is_host(host):
        raise ValueError(_("The URL names no valid host."))
    if user and not _USER.fullmatch(user):
        raise ValueError(_("The user of the URL has characters that are not allowed."))
    if scheme == "ssh" and not user:
        raise ValueError(_("Name the user in the URL, which is git at most servers: ssh://git@host/path."))
    if not path.strip("/") or not _PATH.fullmatch(path):
        raise ValueError(_("The URL names no repository, or its path has characters that are not allowed."))
    if any(part in (".", "..") or part.startswith("-") for part in path.split("/")[1:]):
        raise ValueError(_("No part of the path begins with a dash, or is . or .."))
    return RemoteUrl("ssh" if scheme == "ssh" else "https", host.lower(), port, path, user)


def _is_host(text: str) -> bool:
    if ":" not in text:
        return len(text) <= 253 and bool(_HOST.fullmatch(text))
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return "%" not in text
