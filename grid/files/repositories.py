"""The repositories of projects, as the dashboard reads them: branches, folders, files and commits. The executor writes into them; the
dashboard only makes new ones, and takes in what an execution could not push."""

import logging
import os
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from grid.core.gitnames import COMMIT, MAIN, is_revision, repository_name
from grid.core.regexes import Expression
from grid.core.translation import gettext as _
from grid.files import git
from grid.files.git import GitFailed

logger = logging.getLogger(__name__)

_LONGEST_LIST = 8 * 2**20
_BUNDLE = Expression(r"([a-z]+-[a-z0-9]{1,32})\.bundle")
_BUNDLE_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Branch:
    name: str
    commit: str


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A file or folder of a commit. `name` is "" where it is no UTF-8: `shown` then has marks for what cannot be shown."""

    name: str
    shown: str
    id: str
    mode: str  # git's
    size: int

    @property
    def is_folder(self) -> bool:
        return self.mode == "040000"

    @property
    def is_link(self) -> bool:
        return self.mode == "120000"

    @property
    def is_module(self) -> bool:
        """Another repository's commit, which is not here."""
        return self.mode == "160000"


@dataclass(frozen=True, slots=True)
class Commit:
    id: str
    author: str
    at: datetime
    title: str

    @property
    def short(self) -> str:
        return self.id[:8]


def is_path(text: str) -> bool:
    """Return whether the text is a path below the root, such as `data/a.csv`."""
    return "\x00" not in text and all(part not in ("", ".", "..") for part in text.split("/"))


@dataclass(frozen=True, slots=True)
class Repository:
    """One project's repository. Every method that reads returns None or nothing for what is not there; all may raise GitFailed."""

    path: Path

    @property
    def exists(self) -> bool:
        return (self.path / "HEAD").is_file()

    def create(self) -> None:
        """Make it unless it is there; what a killed process left half-made is completed. Raise OSError, GitFailed."""
        if self.exists:
            return
        self.path.mkdir(parents=True, exist_ok=True)
        git.run(self.path, "init", "--quiet", "--bare", "--template=", f"--initial-branch={MAIN}", "--shared=group")
        # Nothing that was pushed is ever taken back, and no pod's end cuts a clean-up short.
        for name in ("receive.denyDeletes", "receive.denyNonFastForwards"):
            git.run(self.path, "config", name, "true")
        git.run(self.path, "config", "gc.auto", "0")

    def branches(self) -> list[Branch]:
        """Return the branches, main first, then those that changed last."""
        form = "--format=%(refname:lstrip=2)%00%(objectname)"
        lines = git.run(self.path, "for-each-ref", form, "--sort=-committerdate", "refs/heads/").decode(
            errors="replace"
        )
        # A branch may have a character in its name at which `splitlines` parts lines.
        branches = [Branch(*line.split("\0")) for line in lines.removesuffix("\n").split("\n") if line]
        return sorted(branches, key=lambda branch: branch.name != MAIN)

    def resolve(self, revision: str) -> str | None:
        """Return the commit of a branch, or of a commit's own name."""
        if not is_revision(revision):
            return None
        for name in (f"refs/heads/{revision}", *([revision] if COMMIT.fullmatch(revision) else [])):
            try:
                return git.run(self.path, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").decode().strip()
            except GitFailed:
                continue
        return None

    def has_results(self, commit: str) -> bool:
        if not COMMIT.fullmatch(commit) or not self.exists:
            return False
        form = ("--format=%(objectname)", "--count=1", "--points-at", commit)
        return git.run(self.path, "for-each-ref", *form, "refs/results/").decode().strip() == commit

    def entry(self, commit: str, path: str) -> TreeEntry | None:
        entries = list(_entries(git.run(self.path, "ls-tree", "-z", "--long", _known(commit), "--", path)))
        return entries[0] if len(entries) == 1 else None

    def folder(self, commit: str, path: str) -> list[TreeEntry]:
        """Return the entries of a folder, "" for the root: folders first."""
        where = f"{_known(commit)}:{path}"
        entries = _entries(git.run(self.path, "ls-tree", "-z", "--long", where, limit=_LONGEST_LIST))
        return sorted(entries, key=lambda entry: not entry.is_folder)

    def files(self, commit: str) -> list[TreeEntry]:
        """Return all files of a commit with their paths, in the order of these."""
        return list(_entries(git.run(self.path, "ls-tree", "-r", "-z", "--long", _known(commit)), whole=True))

    def difference(self, first: TreeEntry, second: TreeEntry, limit: int) -> bytes:
        """Return the beginning of how two files differ, line by line, without a head."""
        plain = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-indent-heuristic")
        answer = git.head(self.path, "diff", *plain, _known(first.id), _known(second.id), limit=limit)
        return answer[max(0, answer.find(b"\n@@")) :].lstrip(b"\n")

    def head_of(self, entry: TreeEntry, limit: int) -> bytes:
        return git.head(self.path, "cat-file", "blob", _known(entry.id), limit=limit)

    def stream(self, entry: TreeEntry) -> Generator[bytes, None, None]:
        return git.stream(self.path, "cat-file", "blob", _known(entry.id))

    def history(self, commit: str, path: str = "", *, count: int, skip: int = 0) -> list[Commit]:
        """Return the commits that led to this one and changed the path, the newest first."""
        form = ("log", "-z", "--format=%H%x00%an%x00%ct%x00%s", f"--max-count={count}", f"--skip={skip}")
        answer = git.run(self.path, *form, _known(commit), "--", *([path] if path else []))
        words = answer.decode(errors="replace").split("\0")[:-1]
        return [
            Commit(id, author, datetime.fromtimestamp(int(at), UTC), title)
            for id, author, at, title in zip(words[::4], words[1::4], words[2::4], words[3::4], strict=True)
        ]

    def unpushed(self) -> Sequence[str]:
        """Return the names of executions whose last changes are kept beside the branches, because they could not be pushed, and are on no
        branch named after them yet. Links, pipes and folders are none; no program has this volume, so none takes a bundle's place later."""
        try:
            with os.scandir(self.path / "unpushed") as entries:
                files = sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
        except (FileNotFoundError, NotADirectoryError):
            return ()
        names = [match[1] for match in map(_BUNDLE.fullmatch, files) if match]
        return [name for name in names if not self._has_taken_in(name)]

    def push_again(self, name: str) -> None:
        """Take what an execution could not push into a branch that is named after it. Raise GitFailed; then it stays kept."""
        fetch = ("fetch", "--quiet", "--no-tags", str(self.kept_bundle(name)), f"refs/heads/kept:refs/heads/{name}")
        git.run(self.path, *fetch, seconds=_BUNDLE_SECONDS)
        self.forget_bundle(name)

    def kept_bundle(self, name: str) -> Path:
        """Return the bundle of an execution's changes that could not be pushed. Raise GitFailed when there is none."""
        if name not in self.unpushed():
            raise GitFailed(_("nothing is kept of this execution"))
        return self._bundle(name)

    def forget_bundle(self, name: str) -> None:
        bundle = self._bundle(name)
        try:
            bundle.unlink(missing_ok=True)
        except OSError as error:  # the folder is not ours; the bundle is not shown any more
            logger.warning("a bundle that was pushed again stays bundle=%s reason=%s", bundle, error)

    def _has_taken_in(self, name: str) -> bool:
        if self.resolve(name) is None:
            return False
        try:
            commit = git.run(self.path, "bundle", "list-heads", str(self._bundle(name))).decode()[:40]
            git.run(self.path, "merge-base", "--is-ancestor", _known(commit), f"refs/heads/{name}")
        except GitFailed:
            return False
        return True

    def _bundle(self, name: str) -> Path:
        return self.path / "unpushed" / f"{name}.bundle"


@dataclass(frozen=True, slots=True)
class Repositories:
    directory: str | Path

    def of(self, project_id: str) -> Repository:
        return Repository(Path(self.directory) / repository_name(project_id))


def _known(object_id: str) -> str:
    if not COMMIT.fullmatch(object_id):
        raise GitFailed(_("no name of an object"))
    return object_id


def _entries(listing: bytes, *, whole: bool = False) -> Iterator[TreeEntry]:
    """Yield the entries that git lists, with their `whole` paths or with their names alone."""
    for line in listing.split(b"\0"):
        facts, _unused, raw = line.partition(b"\t")
        if not raw:
            continue
        mode, _kind, id, size = facts.decode().split()
        raw = raw if whole else raw.rpartition(b"/")[2]
        shown = raw.decode(errors="replace")
        name = shown if shown.encode() == raw else ""
        yield TreeEntry(name, shown, id, mode, int(size) if size.isdigit() else 0)
