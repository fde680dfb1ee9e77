"""The real paths of a container's mounts, and the rewriting of texts that name mount paths.

Without root there is no mount namespace, so `/mnt/project` does not exist for the program. The kubelet rewrites mount paths
to the real directories in the command, the arguments, the working directory and the values of the environment. A path
is rewritten where it stands alone: at the beginning of a text or after a character that cannot belong to a path (a space, a
quote, `=`, `:`, `,` and the like), and only as whole components: `/data` is found in `/data/x` and `--dir=/data`, not in
`/data2`, `/mnt/data` or `http://host/data`. The longest mount path wins. Paths that a program composes itself are not rewritten.
"""

import re
from collections.abc import Mapping

# A path is rewritten only if the characters before and after it are none of these.
_IN_A_PATH = r"A-Za-z0-9_.\-/~%+@}\\"
_IN_A_NAME = r"A-Za-z0-9_.\-~%+@"


class Mounts:
    """Mount paths of one container, each with its real path; `/dev/shm` is the machine's own and not rewritten."""

    def __init__(self, places: Mapping[str, str]) -> None:
        cleaned = {clean(path): place for path, place in places.items()}
        self.places = {path: place for path, place in cleaned.items() if path not in ("/", "/dev/shm")}
        longest_first = sorted(self.places, key=len, reverse=True)
        alternatives = "|".join(re.escape(path) for path in longest_first)
        self._pattern = re.compile(f"(?<![{_IN_A_PATH}])({alternatives})(?![{_IN_A_NAME}])") if self.places else None

    def rewrite(self, text: str) -> str:
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda match: self.places[match.group()], text)


def clean(path: str) -> str:
    """Return the path without doubled and trailing slashes."""
    return "/" + "/".join(part for part in path.split("/") if part not in ("", "."))
