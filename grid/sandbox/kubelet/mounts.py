"""The real paths of a container's mounts, and the rewriting of texts that name mount paths.

Without root there is no mount namespace, so `/mnt/project` does not exist for the program. The kubelet rewrites mount paths
to the real directories in the command, the arguments, the working directory and the values of the environment. A path
is rewritten where it stands alone: at the beginning of a text or after a character that cannot belong to a path (a space, a
quote, `=`, `:`, `,` and the like), and only as whole components: `/data` is found in `/data/x` and `--dir=/data`, not in
`/data2`, `/mnt/data` or `http://host/data`. The longest mount path wins. Paths that a program composes itself are not rewritten.
"""

import string
from collections.abc import Mapping

# A path is rewritten only if the characters before and after it are none of these.
_IN_A_NAME = frozenset(f"{string.ascii_letters}{string.digits}_.-~%+@")
_IN_A_PATH = _IN_A_NAME | set("/}\\")


class Mounts:
    """Mount paths of one container, each with its real path; `/dev/shm` is the machine's own and not rewritten."""

    def __init__(self, places: Mapping[str, str]) -> None:
        cleaned = {clean(path): place for path, place in places.items()}
        self.places = {path: place for path, place in cleaned.items() if path not in ("/", "/dev/shm")}
        self._longest_first = sorted(self.places, key=len, reverse=True)

    def rewrite(self, text: str) -> str:
        if not self.places:
            return text
        parts: list[str] = []
        end = 0
        start = text.find("/")
        while start >= 0:
            path = self._path_at(text, start)
            if path:
                parts += text[end:start], self.places[path]
                end = start + len(path)
            start = text.find("/", max(end, start + 1))
        return "".join((*parts, text[end:]))

    def _path_at(self, text: str, start: int) -> str:
        """Return the longest mount path that stands alone at a place; "" for none."""
        if text[start - 1 : start] in _IN_A_PATH:
            return ""
        for path in self._longest_first:
            if text.startswith(path, start) and text[start + len(path) : start + len(path) + 1] not in _IN_A_NAME:
                return path
        return ""


def clean(path: str) -> str:
    """Return the path without doubled and trailing slashes."""
    return "/" + "/".join(part for part in path.split("/") if part not in ("", "."))
