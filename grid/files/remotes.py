"""Remote repositories as the dashboard's process reaches them: to test a connection, to read a server's key, and to push again what an
execution could not.

A person has typed the URL and chosen the server. So the addresses are asked for first, and git and ssh are held to one that may be reached:
a name that leads elsewhere a moment later changes nothing. No redirect, configuration, hook or helper is followed, every call has limits of
time and of what is read, and few run at once. Secrets are in files of a private folder that lives as long as the call.
"""

import base64
import hashlib
import os
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from grid.core.errors import GridError
from grid.core.regexes import Expression
from grid.core.translation import gettext as _
from grid.diagnosis.remotetroubles import explain, is_about_host_key, scrubbed
from grid.files.executor import ASKPASS, ISOLATED, SSH_COMMAND
from grid.files.remoteurls import RemoteUrl

SECONDS = 25.0
_PUSH_SECONDS = 240.0
_LONGEST_ANSWER = 4 * 2**20
# Of each process, in MiB of address space: git keeps all that a server says of its branches before it prints the first.
_MEMORY = 256
_PUSH_MEMORY = 1024
_LARGEST_BUNDLE = 200 * 2**20  # it is unpacked in a folder that all replicas' processes share, and that is small
_STALE_SECONDS = 15 * 60.0  # longer than any call takes
_FOLDERS = "compute-grid-remote-"
_AT_ONCE = threading.BoundedSemaphore(4)
_PATIENCE = 5.0
_BRANCH_LINE = Expression(r"[0-9a-f]{40,64}\trefs/heads/(.+)")
# The best first; what OpenSSH still accepts.
_KEY_TYPES = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa")
_CONFIGURATION = """\
[core]
hooksPath = /dev/null
fsmonitor = false
bigFileThreshold = 16m
packedGitWindowSize = 16m
packedGitLimit = 128m
[pack]
threads = 1
windowMemory = 32m
[fetch]
unpackLimit = 1
[http]
followRedirects = false
lowSpeedLimit = 1000
lowSpeedTime = 20
[push]
recurseSubmodules = no
[gc]
auto = 0
"""

MayReach = Callable[[str], bool]


class RemoteFailed(GridError):
    """The remote repository did not do as asked; the message is a sentence for the project's owner."""


class HostKeyRefused(RemoteFailed):
    """The SSH server shows another key than the confirmed one, or none was confirmed."""


@dataclass(frozen=True, slots=True)
class RemoteCredentials:
    """What the server asks for: a user name and a token, or a key and the server's own."""

    username: str = ""
    token: str = field(default="", repr=False)
    key: str = field(default="", repr=False)
    known_hosts: str = ""

    def files(self) -> Mapping[str, str]:
        """Return the contents of the folder that the executor gets, too, by name."""
        contents = {"username": self.username, "token": self.token, "key": self.key, "known_hosts": self.known_hosts}
        return {name: text for name, text in contents.items() if text}


@dataclass(frozen=True, slots=True)
class HostKey:
    type: str
    text: str  # base64

    @property
    def fingerprint(self) -> str:
        digest = hashlib.sha256(base64.b64decode(self.text)).digest()
        return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"

    @classmethod
    def parse(cls, text: str) -> "HostKey":
        """Read `ssh-ed25519 AAAA...`. Raise ValueError."""
        type, _, encoded = text.partition(" ")
        name = type.encode()
        raw = base64.b64decode(encoded, validate=True)
        if type not in _KEY_TYPES or len(encoded) > 4000 or not raw.startswith(len(name).to_bytes(4, "big") + name):
            raise ValueError("This is no key of an SSH server.")
        return cls(type, encoded)


@dataclass(frozen=True, slots=True)
class Remote:
    """A project's remote repository. `may_reach` says which addresses may be; `authorities` is a file of further certificates."""

    url: RemoteUrl
    credentials: RemoteCredentials
    may_reach: MayReach
    authorities: str = ""

    def branches(self) -> list[str]:
        """Return the names of its branches, which shows that it can be reached and read. Raise RemoteFailed."""
        with self._folder() as (folder, address):
            listing = self._git(folder, address, "ls-remote", "--heads", "--", self.url.text)
        return [match[1] for match in map(_BRANCH_LINE.fullmatch, listing.split("\n")) if match]

    def push_bundle(self, bundle: Path, branch: str, *, objects: Path | None = None) -> None:
        """Push the commit of an executor's bundle to a branch; `objects` are of the repository that it may build on. Raise RemoteFailed."""
        _check_room(bundle)
        with self._folder() as (folder, address):
            if objects is not None and objects.is_dir():
                (folder / "git" / "objects" / "info" / "alternates").write_text(f"{objects}\n")
            names = f"refs/heads/kept:refs/heads/{branch}"
            local = ("fetch", "--quiet", "--no-tags", "--", str(bundle), names)
            self._git(folder, address, *local, is_push=True, protocol="file")
            push = ("push", "--quiet", "--", self.url.text, f"refs/heads/{branch}:refs/heads/{branch}")
            self._git(folder, address, *push, is_push=True)

    def host_key(self) -> HostKey:
        """Return the key that the SSH server shows, which nobody has confirmed. Raise RemoteFailed."""
        with self._folder() as (folder, address):
            asked = ("-T", "10", "-t", "ed25519,ecdsa,rsa", "-p", str(self.url.port))
            answer = _run(["ssh-keyscan", *asked, "--", address], {"PATH": _path()}, folder, SECONDS)[1]
        keys = []
        for line in answer.splitlines():
            with suppress(ValueError):
                keys.append(HostKey.parse(line.partition(" ")[2].strip()))
        if not keys:
            sentence = _("No SSH server answers at {host}, port {port}.", host=self.url.host, port=self.url.port)
            raise RemoteFailed(sentence)
        return min(keys, key=lambda key: _KEY_TYPES.index(key.type))

    @contextmanager
    def _folder(self) -> Iterator[tuple[Path, str]]:
        """Yield a private folder with the secret and an empty repository, and the address to connect to."""
        if not _AT_ONCE.acquire(timeout=_PATIENCE):
            raise RemoteFailed(_("Several connections are being tested now. Try again in a minute."))
        try:
            _remove_stale_folders(Path(tempfile.gettempdir()), time.time())
            address = _address(self.url, self.may_reach)
            with tempfile.TemporaryDirectory(prefix=_FOLDERS) as name:
                folder = Path(name)
                for file, text in self.credentials.files().items():
                    (folder / file).touch(0o600)
                    (folder / file).write_text(text)
                (folder / "askpass").write_text(ASKPASS.format(secret=shlex.quote(name)))
                (folder / "askpass").chmod(0o700)
                (folder / "gitconfig").write_text(_CONFIGURATION + _held_to(self.url, address))
                self._git(folder, address, "init", "--quiet", "--bare", "--template=", f"{folder / 'git'}")
                (folder / "git" / "objects" / "info").mkdir(parents=True, exist_ok=True)
                yield folder, address
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise RemoteFailed(_("The connection could not be prepared: {reason}.", reason=reason)) from error
        finally:
            _AT_ONCE.release()

    def _git(self, folder: Path, address: str, *arguments: str, is_push: bool = False, protocol: str = "") -> str:
        environment = self._environment(folder, address) | {"GIT_ALLOW_PROTOCOL": protocol or self.url.scheme}
        seconds, memory = (_PUSH_SECONDS, _PUSH_MEMORY) if is_push else (SECONDS, _MEMORY)
        code, answer = _run(["git", *arguments], environment, folder, seconds, memory)
        if code == 0:
            return answer
        if self.url.is_ssh and is_about_host_key(answer):
            raise HostKeyRefused(explain(answer))
        known = scrubbed(answer, (self.credentials.token, self.credentials.key.strip()))
        raise RemoteFailed(explain(answer) or _("Git reports: {said}.", said=known or _("nothing")))

    def _environment(self, folder: Path, address: str) -> dict[str, str]:
        paths = {"key": shlex.quote(str(folder / "key")), "known": shlex.quote(str(folder / "known_hosts"))}
        held = f"-o HostName={shlex.quote(address)} -o HostKeyAlias={shlex.quote(self.url.known_host)}"
        return {
            **ISOLATED,
            "PATH": _path(),
            "HOME": str(folder),
            "GIT_DIR": str(folder / "git"),
            "GIT_CONFIG_GLOBAL": str(folder / "gitconfig"),
            "GIT_ASKPASS": str(folder / "askpass"),
            "GIT_SSH_COMMAND": f"{SSH_COMMAND.format(**paths)} {held}",
            "GIT_SSH_VARIANT": "ssh",
            **({"GIT_SSL_CAINFO": self.authorities} if self.authorities else {}),
        }


def _address(url: RemoteUrl, may_reach: MayReach) -> str:
    """Return the address to connect to. Raise RemoteFailed when the name leads to none that may be reached."""
    try:
        answers = socket.getaddrinfo(url.host, url.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise RemoteFailed(explain("Could not resolve host")) from error
    if reachable := [address for answer in answers if may_reach(address := str(answer[4][0]))]:
        return reachable[0]
    raise RemoteFailed(_("{host} leads to a private or excepted address: ask an admin to allow it.", host=url.host))


def _held_to(url: RemoteUrl, address: str) -> str:
    """Return the configuration with which curl connects to that address, and asks no name server itself."""
    with suppress(ValueError):
        ip_address(url.host)
        return ""
    shown = f"[{address}]" if ":" in address else address
    return f"[http]\ncurloptResolve = {url.host}:{url.port}:{shown}\n"


def _check_room(bundle: Path) -> None:
    """Raise RemoteFailed for a bundle that is too large to be unpacked here."""
    size, free = bundle.stat().st_size, shutil.disk_usage(tempfile.gettempdir()).free
    if size > _LARGEST_BUNDLE:
        sentence = _(
            "They are a bundle of {size:.0f} MiB, and {most} MiB is the most that is pushed from here. "
            "Ask an operator to push {name} from the volume of the repositories."
        ).format(size=size / 2**20, most=_LARGEST_BUNDLE // 2**20, name=bundle.name)
        raise RemoteFailed(sentence)
    if 2 * size > free:
        raise RemoteFailed(_("There is not enough free disk space for that here. Ask an operator to make room."))


def _remove_stale_folders(root: Path, now: float) -> None:
    """Remove what a process that was killed has left behind: there are secrets in it."""
    for folder in root.glob(f"{_FOLDERS}*"):
        with suppress(OSError):  # gone meanwhile
            facts = folder.lstat()
            if facts.st_uid == os.getuid() and stat.S_ISDIR(facts.st_mode) and now - facts.st_mtime > _STALE_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


def _run(
    command: Sequence[str], environment: Mapping[str, str], folder: Path, seconds: float, memory: int = _MEMORY
) -> tuple[int, str]:
    """Return the exit code and what it has printed, of both outputs. Raise RemoteFailed when it takes too long or says too much. It and
    all that it starts have so many MiB of address space each."""
    if shutil.which(command[0], path=environment["PATH"]) is None:
        raise RemoteFailed(_("The program {command} is not installed where the dashboard runs.", command=command[0]))
    process = subprocess.Popen(
        ["sh", "-c", f'ulimit -v {memory * 1024} && exec "$@"', "sh", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=dict(environment),
        cwd=folder,
        start_new_session=True,
    )
    assert process.stdout is not None
    is_late = threading.Event()

    def end() -> None:
        is_late.set()
        _kill(process)

    timer = threading.Timer(seconds, end)
    timer.start()
    try:
        output = process.stdout.read(_LONGEST_ANSWER + 1)
        if len(output) > _LONGEST_ANSWER:
            _kill(process)
        process.stdout.close()
        code = process.wait()  # what has closed its output may still be there, so the timer ends only after it
    finally:
        timer.cancel()
    if is_late.is_set():
        raise RemoteFailed(explain("timed out"))
    if len(output) > _LONGEST_ANSWER:
        raise RemoteFailed(_("The server answers with more than anybody would read."))
    return code, output.decode(errors="replace")


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _path() -> str:
    return os.environ.get("PATH", os.defpath)
