"""What git and ssh say of a remote repository that does not do as asked, in words for a project's owner (pure).

Their own texts may name credentials, and a server's may say anything: they are read here, and shown nowhere but without what could be a
credential.
"""

from collections.abc import Iterable

from grid.core.regexes import Expression, RepeatedExpression
from grid.core.translation import gettext as _

_CREDENTIALS = RepeatedExpression(r"//[^/\s@]*@")
_LONGEST = 500
_LONGEST_NAME = 100  # of a file, within a sentence
_MOST_READ = 32 * 2**10  # characters of a text: its beginning and its end, in which git says what went wrong
_HOST_KEY = (
    r"REMOTE HOST IDENTIFICATION HAS CHANGED|Offending .* key",
    r"No \S+ host key is known|Host key verification failed",
)
_ABOUT_HOST_KEY = Expression(f"(?i){'|'.join(_HOST_KEY)}")
# The first that matches, in git's own words (LC_ALL=C) and those of curl with OpenSSL or GnuTLS, and of OpenSSH.
_KNOWN = tuple(
    (Expression(f"(?i){pattern}"), sentence)
    for pattern, sentence in (
        (r"[Oo]ut of memory|Cannot allocate memory",
         _("It needs more memory than it may have: the server names too many branches, or the changes are too large. "
           "Ask an operator.")),
        (_HOST_KEY[0], _("The server's key is not the confirmed one. Ask who runs the server whether it has a new key; then test "
         "the connection.")),
        (_HOST_KEY[1], _("The server's key is not known yet. Confirm its fingerprint on the page of the remote repository.")),
        (r"Could not resolve host|Name or service not known|Temporary failure in name resolution|No address associated",
         _("There is no such host. Look at its name in the URL.")),
        (r"certificate|SSL|TLS", _("The server's certificate is not trusted or the connection is not secured. Ask an admin whether its "
         "authority is known here.")),
        (r"Could not read from remote repository.*Permission denied \(|Permission denied \(|invalid format|error in libcrypto",
         _("Access was refused: the server does not accept the key. Add its public half there, or store another key.")),
        (r"Authentication failed|could not read (Username|Password)|HTTP Basic: Access denied|returned error: 40[13]|403",
         _("Access was refused: look at the user name, and whether the token is valid and may read and write the repository.")),
        (r"repository .*not found|returned error: 404|does not appear to be a git repository|not exist|no such repository",
         _("There is no such repository, or the secret may not see it. Look at the path in the URL.")),
        (r"returned error: 3\d\d|redirect", _("The server redirects, which is not followed. Enter the URL that it leads to.")),
        (r"(?:File (\S+) is [\d.]+ [KMG]i?B; )?this (?:exceeds|is larger than)|file size limit of|maximum (?:file|object) size",
         _("The server takes no file as large as {file}. Keep it on a volume or in object storage, take it out of the "
           "commits, and save again.")),
        (r"remote rejected|declined|protected branch|denied to|not allowed to push",
         _("The server does not accept the push: the secret may only read, or the branch is protected.")),
        (r"timed out|Timeout|too slow|Operation too slow",
         _("The server did not answer in time. Try again, or ask an admin whether it can be reached from here.")),
        (r"Connection refused|Failed to connect|Couldn't connect|Network is unreachable|No route to host|Connection (closed|reset)",
         _("The server cannot be reached. Look at the host and port, or ask an admin whether it can be reached from here.")),
    )
)  # fmt: skip


def explain(text: str) -> str:
    """Return a sentence with what to do; "" for a text that is not known."""
    read = _read(text)
    for pattern, sentence in _KNOWN:
        if match := pattern.search(read):
            return sentence.replace(
                "{file}", scrubbed(match[1])[:_LONGEST_NAME] if match.groups() and match[1] else _("one of these")
            )
    return ""


def is_about_host_key(text: str) -> bool:
    """Return whether an SSH server's key is not the confirmed one, or none was confirmed."""
    return _ABOUT_HOST_KEY.search(_read(text)) is not None


def scrubbed(text: str, secrets: Iterable[str] = ()) -> str:
    """Return the text in one line without what could be a credential, cut short."""
    line = _CREDENTIALS.sub("//", " ".join(text.split()))
    for secret in secrets:
        if secret:
            line = line.replace(secret, "***")
    return "".join(character if character.isprintable() else "?" for character in line[:_LONGEST])


def _read(text: str) -> str:
    half = _MOST_READ // 2
    return text if len(text) <= _MOST_READ else f"{text[:half]}\n{text[-half:]}"
