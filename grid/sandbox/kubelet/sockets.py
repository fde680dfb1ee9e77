"""The folder of a pod's Unix sockets: an emptyDir of the name `sockets`.

The path of a Unix socket has at most 107 bytes, and a pod's directory may be anywhere. So the volume is a folder with a short path in
/tmp, to which a link in the pod's directory leads. It is its user's alone, and nobody else can have made it before: its name is random.
"""

import shutil
import tempfile
from pathlib import Path

SOCKETS = "sockets"
_PREFIX = "grid-sockets-"


def made(link: Path) -> Path:
    """Return the folder to which the link leads, both made where they are not there."""
    if not (link.is_symlink() and link.is_dir()):
        link.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        link.unlink(missing_ok=True)
        link.symlink_to(tempfile.mkdtemp(prefix=_PREFIX, dir="/tmp"))
    return link.readlink()


def remove(volumes: Path) -> None:
    """Remove the folder of the pod with this directory of volumes, if it has one."""
    link = volumes / SOCKETS
    if link.is_symlink() and link.readlink().name.startswith(_PREFIX):
        shutil.rmtree(link.readlink(), ignore_errors=True)
