"""Which locked packages are vulnerable: `python -m tests.support.advisories check|ask|update [DIRECTORY]`.

`check` reads .ci/advisories.json alone, so that it fails by a change of ours and by nothing that happened elsewhere this morning. `ask` has
pip-audit ask PyPI, where it is reached, and only prints. `update` writes the file anew: from OSV, which has PyPA's advisories, or from a
copy of https://github.com/pypa/advisory-database in a directory. The file has facts only: ids, versions, sources and dates.
"""

import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

import yaml
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
FILE = ROOT / ".ci" / "advisories.json"
LOCKS = (ROOT / "requirements.lock", ROOT / "requirements-dev.lock")
OSV = "https://api.osv.dev/v1/query"
SECONDS = 20.0  # for an answer
PIP_AUDIT_SECONDS = 120.0  # for all packages
_LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
_FACTS = ("package", "id", "alias", "affected")


def locked(locks: Iterable[Path] = LOCKS) -> dict[str, str]:
    """Return the version of each locked package by its canonical name."""
    return {canonicalize_name(name): version for lock in locks for name, version in _LOCKED.findall(lock.read_text())}


def problems(known: Mapping[str, Any], versions: Mapping[str, str], today: date) -> Iterator[str]:
    """Yield a sentence for each locked version that an advisory names, unless it was accepted with a reason that has not expired."""
    accepted = {(entry["package"], entry["id"]): entry for entry in known["accepted"]}
    for advisory in known["advisories"]:
        name, id = advisory["package"], advisory["id"]
        version = versions.get(name)
        if version is None or not is_affected(version, advisory["affected"]):
            continue
        reason = accepted.get((name, id))
        if reason is None:
            yield f"{name} {version} is affected by {id} ({advisory['affected']}): update it, or accept it with a reason."
        elif date.fromisoformat(reason["until"]) < today:
            yield f"{name} {version} is affected by {id}, which was accepted until {reason['until']}: {reason['reason']}"


def is_affected(version: str, affected: str) -> bool:
    """Return whether one of the ranges, which " || " separates, has the version; "" has every one."""
    return any(SpecifierSet(specifiers, prereleases=True).contains(version) for specifiers in affected.split(" || "))


def facts_of(advisory: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Yield the facts of an advisory in OSV's format, one for each package of PyPI; none of a withdrawn one."""
    for affected in advisory.get("affected", ()) if not advisory.get("withdrawn") else ():
        if affected["package"]["ecosystem"] != "PyPI":
            continue
        ranges = [specifier for events in _ranges(affected) for specifier in _specifiers(events)]
        versions = [f"=={version}" for version in affected.get("versions", ())]
        yield {
            "package": canonicalize_name(affected["package"]["name"]),
            "id": advisory["id"],
            "alias": next((alias for alias in advisory.get("aliases", ()) if alias.startswith("CVE-")), ""),
            "affected": " || ".join(ranges or versions),
        }


def _ranges(affected: Mapping[str, Any]) -> Iterator[list[Mapping[str, Any]]]:
    yield from (span["events"] for span in affected.get("ranges", ()) if span["type"] == "ECOSYSTEM")


def _specifiers(events: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a specifier for each part of a range: events open and close its parts in their order."""
    begin: str | None = None
    for event in events:
        (what, version), *_ = event.items()
        if what == "introduced":
            begin = "" if str(version) == "0" else f">={version}"
        elif begin is not None and what in ("fixed", "last_affected"):
            yield ",".join(filter(None, (begin, f"{'<' if what == 'fixed' else '<='}{version}")))
            begin = None
    if begin is not None:
        yield begin or ">=0"


def from_directory(directory: Path, names: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the advisories of these packages in a copy of PyPA's database."""
    for name in names:
        for path in sorted((directory / "vulns" / name).glob("*.yaml")):
            # A time stays the text that it is.
            yield yaml.load(path.read_text(), Loader=yaml.BaseLoader)


def from_osv(names: Iterable[str], ask: Callable[[bytes], bytes]) -> Iterator[Mapping[str, Any]]:
    """Yield the advisories of these packages as OSV answers, page by page. Raise OSError where it is not reached."""
    for name in names:
        page: str | None = ""
        while page is not None:
            query = {"package": {"name": name, "ecosystem": "PyPI"}} | ({"page_token": page} if page else {})
            answer = json.loads(ask(json.dumps(query).encode()))
            yield from answer.get("vulns", ())
            page = answer.get("next_page_token")


def _ask_osv(query: bytes) -> bytes:
    request = urllib.request.Request(OSV, query, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        return bytes(answer.read())


def updated(
    known: Mapping[str, Any], advisories: Iterable[Mapping[str, Any]], names: Iterable[str], **about: str
) -> dict[str, Any]:
    """Return the file's new content. What was accepted stays; an advisory with several ids is there once, under PyPA's if it has one."""
    wanted, kept = set(names), {}
    for facts in sorted((facts for advisory in advisories for facts in facts_of(advisory)), key=itemgetter("id")):
        if facts["package"] in wanted:
            kept[facts["package"], facts["alias"] or facts["id"]] = facts  # PYSEC- comes after GHSA-
    rows = sorted(kept.values(), key=itemgetter("package", "id"))
    return {**about, "accepted": known["accepted"], "advisories": rows}


def write(content: Mapping[str, Any], file: Path = FILE) -> None:
    """Write the file with one line for each advisory, so that an update reads well as a change."""
    head = json.dumps({name: value for name, value in content.items() if name != "advisories"}, indent=1)
    rows = ",\n".join(f"  {json.dumps({fact: row[fact] for fact in _FACTS})}" for row in content["advisories"])
    file.write_text(f'{head.removesuffix("}").rstrip()},\n "advisories": [\n{rows}\n ]\n}}\n')


def check() -> int:
    known, versions = json.loads(FILE.read_text()), locked()
    sentences = list(problems(known, versions, datetime.now(UTC).date()))
    counted = f"{len(known['advisories'])} advisories about {len(versions)} locked packages"
    _say(
        *sentences,
        f"{counted} are known ({known['source']}, as of {known['as_of']}); {len(sentences)} matter to a locked version.",
    )
    return 1 if sentences else 0


def ask() -> int:
    """Print what pip-audit finds; packages that PyPI does not answer for are counted, for pip-audit alone would call them sound."""
    command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", "--progress-spinner", "off"]
    try:
        done = subprocess.run(
            [*command, "--format", "json", "-r", str(LOCKS[1]), "-r", str(LOCKS[0])],
            capture_output=True, text=True, timeout=PIP_AUDIT_SECONDS, check=False,
        )  # fmt: skip
        answers = json.loads(done.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError, KeyError):
        _say("pip-audit: no answer; PyPI is not reached.")
        return 0
    _say(*live_lines(answers))
    return 0


def live_lines(answers: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what pip-audit found, and how many packages it was not answered for."""
    answers = list(answers)
    unanswered = sum("skip_reason" in answer for answer in answers)
    for answer in answers:
        for advisory in answer.get("vulns", ()):
            fixed = ", ".join(advisory["fix_versions"]) or "no version"
            yield f"pip-audit: {answer['name']} {answer['version']}: {advisory['id']}, fixed in {fixed}."
    yield f"pip-audit: PyPI answered for {len(answers) - unanswered} of {len(answers)} packages."


def update(directory: str = "") -> int:
    names = sorted(locked())
    known = json.loads(FILE.read_text()) if FILE.exists() else {"accepted": []}
    today = datetime.now(UTC).date().isoformat()
    if directory:
        source = "github.com/pypa/advisory-database"
        git = ["git", "-C", directory, "log", "-1", "--format=%cs"]
        as_of = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
        advisories = list(from_directory(Path(directory), names))
    else:
        source, as_of = "osv.dev", today
        try:
            advisories = list(from_osv(names, _ask_osv))
        except OSError as error:
            _say(f"OSV is not reached ({error}). Name a copy of the advisory database: make advisories FROM=DIRECTORY")
            return 1
    content = updated(known, advisories, names, source=source, as_of=as_of, updated=today)
    write(content)
    _say(f"{len(content['advisories'])} advisories about {len(names)} locked packages, as of {as_of}.")
    return 0


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    sys.exit({"check": check, "ask": ask, "update": update}[sys.argv[1]](*sys.argv[2:]))
