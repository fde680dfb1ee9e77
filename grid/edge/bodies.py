"""Request bodies, read whole into memory before the application begins.

Django would write the body to a temporary file and hold a request while it waits, so an upload that never ends would cost a file and a
task. Here it costs at most its limit, for a limited time, and the application sees only what has arrived.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

from grid.core.regexes import Expression
from grid.core.translation import gettext as _
from grid.edge.refusals import Message, Receive, Refusal, Scope, header

KIB, MIB = 2**10, 2**20


@dataclass(frozen=True, slots=True)
class Bodies:
    """The largest bodies in bytes: without a session, on particular paths, on those where programs post
    without a session, otherwise, and of uploads of files, which are the paths that
    match `uploads`; and the seconds in which a body, and an upload, must arrive."""

    anonymous: int = 16 * KIB
    paths: Mapping[str, int] = field(default_factory=dict)
    posts: Mapping[str, int] = field(default_factory=dict)
    others: int = MIB
    seconds: float = 30.0
    uploads: Expression | None = None
    upload: int = MIB
    upload_seconds: float = 120.0

    def is_upload(self, path: str, *, is_anonymous: bool) -> bool:
        return not is_anonymous and self.is_for_uploads(path)

    def is_for_uploads(self, path: str) -> bool:
        return self.uploads is not None and self.uploads.fullmatch(path) is not None

    def too_large(self, path: str, *, is_anonymous: bool) -> Refusal:
        """Return what is answered to a body beyond `most`."""
        size = _words(self.most(path, is_anonymous=is_anonymous))
        if not self.is_for_uploads(path):
            sentence = _(
                "This form takes no more than {size}. Put large data into your project's files, and name their path instead.",
                size=size,
            )
        elif is_anonymous:
            sentence = _(
                "Nothing was saved: you are not logged in, or your session has ended. Log in, and choose the files again."
            )
        else:
            sentence = _(
                "Nothing was saved: all files of one upload and its form take no more than {size} together. Upload fewer at a time, and "
                "have a workspace or job write large ones into the project.",
                size=size,
            )
        return Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body-too-large", sentence)

    def most(self, path: str, *, is_anonymous: bool) -> int:
        if self.is_upload(path, is_anonymous=is_anonymous):
            return self.upload
        if path in self.posts:
            return self.posts[path]
        usual = self.anonymous if is_anonymous else self.others
        return min(usual, self.paths.get(path, usual))


class BodyRefused(Exception):
    """A body that is too large or too late."""

    def __init__(self, refusal: Refusal, value: str = "") -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal
        self.value = value


class Gone(Exception):
    """The client has closed the connection."""


def has_body(scope: Scope) -> bool:
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])


async def read_body(scope: Scope, receive: Receive, *, most: int, seconds: float, too_large: Refusal) -> Receive:
    """Read the whole body and return a `receive` that replays it. Raise BodyRefused when it is too late, or with `too_large`, Gone when
    the client disconnects."""
    declared = header(scope, b"content-length")
    if declared.isdecimal() and int(declared[:20]) > most:
        raise BodyRefused(too_large, value=declared)
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Gone
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > most:
                    raise BodyRefused(too_large, value=f"{len(body)} and more")
    except TimeoutError:
        raise BodyRefused(_too_late(seconds), value=f"{len(body)} of {declared or 'unknown'}") from None
    whole: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

    async def replay() -> Message:
        return whole.pop() if whole else await receive()

    return replay


def _words(size: int) -> str:
    return f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB"


def _too_late(seconds: float) -> Refusal:
    return Refusal(
        HTTPStatus.REQUEST_TIMEOUT,
        "body-too-late",
        _(
            "The form did not arrive within {seconds:g} seconds. Check your connection, go back and send it again.",
            seconds=seconds,
        ),
    )
