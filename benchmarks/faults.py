"""What pages say while a real Kubernetes API server is in trouble, after how many seconds, and how long until it is healed.

    benchmarks/faults.sh FOLDER_OF_SCRIPTS FOLDER_OF_BINARIES [FAULT ...]      (starts and ends a control plane, and says all that follows)
    REAL_KUBECONFIG=... REAL_API_DOWN=... REAL_API_UP=... SNAPSHOT_SAVE=... SNAPSHOT_RESTORE=... python -m benchmarks.faults [FAULT ...]

Web, proxy and controller run with the rights of deploy/access.yaml and reach the server through another that delays, refuses and cuts.
Some jobs sleep meanwhile. For each fault, a line of a Markdown table: the banners of Infrastructure, Executions and home, and what
Platform health says other than before, each with the seconds from the fault's beginning; the seconds from its end until no banner is
left, until the jobs and their pods agree, and until the lights, for which the cluster is asked twice a minute, are as before; whether the
controller led without a break; and the jobs that have not gone on. Banners that differ in two looks in a row are printed as well. Before
a restored snapshot one job is launched and one is stopped, which the snapshot does not know. With `launches`, jobs are launched while
each answer takes 0, 1, 2 and 4 s.
"""

import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from benchmarks.faultyserver import FaultyServer
from tests.end_to_end.grid import Session, words
from tests.end_to_end.real import ACCESS, API_DOWN, API_UP, NAMESPACE, RealGrid, cluster_of
from tests.support.waiting import wait_until

LASTS = 30.0
JOBS = 6
LAUNCHES = 3  # for each delay; the median counts
_QUIET_SECONDS = 10.0  # in which all is as it should be, before a fault and after
_FIRST_SECONDS = 65.0  # in which the cluster is asked twice for what the lights tell
_PATIENCE_SECONDS = 240.0
_LOOK_SECONDS = 0.5
_SERVICE = re.compile(r'<tr>\s*<th scope="row">(.*?)</th>\s*<td data-label.*?>(.*?)</td>', re.DOTALL)
_SINCE = re.compile(r'<span class="muted">.*?</span>', re.DOTALL)
_NUMBER = re.compile(r"\d[\d,.]*")
_HEADLINE = re.compile(r'id="lights-title".*?<p>(.*?)</p>', re.DOTALL)
_BANNER = re.compile(r'class="freshness freshness-(\w+)">(.*?)</div>', re.DOTALL)
_HEADLINE_OF_BANNER = re.compile(r'class="freshness-headline" role="status">(.*?)</span>', re.DOTALL)
_HEAD = re.compile(r'class="execution-head">(.*?)</div>', re.DOTALL)
_SETTLED = {"Running", "Stopped", "Failed", "Error", "Succeeded"}
_PAGES = (("operator", "/infrastructure/"), ("scientist", "/executions/"), ("scientist", "/"))
_SLEEP = """
from grid.models import Environment
from grid.models import HardwareTier
Environment.objects.create(id="sleep", name="Sleep", kind="job", image="compute-grid/test-sleep:1", command=["sleep", "3600"])
HardwareTier.objects.create(id="least", name="Least", node_pool="default", cores="10m", memory="32Mi")
"""


class FaultyGrid(RealGrid):
    """A Compute Grid that reaches the API server through a faulty one."""

    server: FaultyServer

    def write_kubeconfig(self, account: str) -> Path:
        path = super().write_kubeconfig(account)
        content = json.loads(path.read_text())
        self.server.accounts[content["users"][0]["user"]["token"]] = account
        content["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{self.server.port}"}
        path.write_text(json.dumps(content))
        return path

    def stops_of_leading(self) -> int:
        return self.output("controller").count("no longer leading")


@dataclass(frozen=True)
class Fault:
    """How trouble begins and ends, and how many seconds it lasts."""

    begins: Callable[[FaultyGrid], None]
    ends: Callable[[FaultyGrid], None] = lambda grid: None
    lasts: float = LASTS


def _shell(command: str) -> None:
    subprocess.run(command, shell=True, check=True, timeout=120, stdout=subprocess.DEVNULL)


def _rights(grid: FaultyGrid, *, there: bool) -> None:
    change = ("apply",) if there else ("delete", "--ignore-not-found")
    rights = grid.folder / "rights.json"
    if not rights.exists():
        manifests = [each for each in yaml.safe_load_all(ACCESS.read_text()) if each["kind"].endswith("Binding")]
        rights.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": manifests}))
    grid.kubectl(*change, "-f", str(rights))


def _set(name: str, value: object) -> Callable[[FaultyGrid], None]:
    return lambda grid: setattr(grid.server, name, value)


RESTORED = "restored from an older snapshot"
FAULTS = {
    "killed": Fault(lambda grid: _shell(API_DOWN), lambda grid: _shell(API_UP)),
    "cut": Fault(lambda grid: grid.server.cut(), lasts=0.0),
    "slow: 2 s an answer": Fault(_set("delay", 2.0), _set("delay", 0.0)),
    "slow: 4 s an answer": Fault(_set("delay", 4.0), _set("delay", 0.0)),
    "throttled: 429": Fault(_set("refusal", (429, {"Retry-After": "5"})), _set("refusal", None)),
    "rights gone": Fault(lambda grid: _rights(grid, there=False), lambda grid: _rights(grid, there=True)),
    RESTORED: Fault(lambda grid: _shell(os.environ["SNAPSHOT_RESTORE"]), lasts=0.0),
}


@dataclass
class People:
    """Who is logged in, and the jobs that they have launched, by id with the state that each is to have."""

    grid: FaultyGrid
    sessions: dict[str, Session] = field(default_factory=dict)
    jobs: dict[str, str] = field(default_factory=dict)
    headline: str = ""  # of Platform health while all is well

    def launch(self, title: str) -> str:
        fields = {"kind": "job", "project": "churn", "title": title, "environment": "sleep", "tier": "least"}
        return self.sessions["scientist"].launch(fields)

    def launch_lasting(self, count: int) -> None:
        ids = [self.launch(f"Job {number}") for number in range(count)]
        for id in ids:
            self.sessions["scientist"].wait_for(id, "Running", seconds=120)
            self.jobs[id] = "Running"

    def stop(self, id: str) -> None:
        page = f"/executions/{id}/"
        self.sessions["scientist"].post(f"{page}stop/", {}, page=page)
        wait_until(lambda: self.sessions["scientist"].state(id) == "Stopped", 120, "a stopped job")
        self.jobs[id] = "Stopped"

    def states(self) -> dict[str, str]:
        return {id: self.sessions["scientist"].state(id) for id in self.jobs}

    def head(self, id: str) -> str:
        """Return what a job's page says at its top."""
        shown = _HEAD.search(self.sessions["scientist"].get(f"/executions/{id}/"))
        return words(shown[1]) if shown else ""

    def lights(self) -> dict[str, str]:
        """Return what Platform health says of each service, and its headline."""
        page = self.sessions["operator"].get("/platform-health/")
        headline = _HEADLINE.search(page)
        lights = {words(name): words(_SINCE.sub("", sentence)) for name, sentence in _SERVICE.findall(page)}
        return {**lights, "headline": words(headline[1]) if headline else ""}

    def agree(self) -> bool:
        """Whether each job that runs has its pod, and nothing else has one."""
        states = self.states()
        running = {f"pod/job-{id}" for id, state in states.items() if state == "Running"}
        pods = self.grid.try_kubectl("get", "pods", "-n", NAMESPACE, "-o", "name")
        return _SETTLED.issuperset(states.values()) and pods.returncode == 0 and set(pods.stdout.split()) == running

    def banners(self) -> dict[str, tuple[str, str]]:
        """Return the banner of each page that has one now, as headline and whole."""
        seen = dict[str, tuple[str, str]]()
        for username, path in _PAGES:
            banner = _BANNER.search(self.sessions[username].get(path))
            if banner is not None and banner[1] not in ("live", "snapshot"):
                headline = _HEADLINE_OF_BANNER.search(banner[2])
                seen[path] = (words(headline[1]) if headline else "", words(banner[2]))
        return seen


@dataclass
class Seen:
    """What was seen during a fault, with the seconds after which it was seen first."""

    banners: dict[str, tuple[float, str]] = field(default_factory=dict)  # by headline
    lights: dict[tuple[str, str], tuple[float, str]] = field(
        default_factory=dict
    )  # by service and sentence without numbers
    differing: list[str] = field(default_factory=list)
    _differed: bool = False

    def take(self, after: float, banners: dict[str, tuple[str, str]], lights: dict[str, str], usual: set[str]) -> None:
        for headline, text in banners.values():
            self.banners.setdefault(headline, (after, text))
        for service, sentence in lights.items():
            key = f"{service}: {_NUMBER.sub('', sentence)}"
            if service != "headline" and key not in usual:
                self.lights.setdefault((service, _NUMBER.sub("", sentence)), (after, sentence))
        headlines = {path: banners[path][0] if path in banners else "" for _name, path in _PAGES}
        differs = len(set(headlines.values())) > 1
        if differs and self._differed:
            self.differing.append(f"after {after:.1f} s: {headlines}")
        self._differed = differs


def _usual(lights: dict[str, str]) -> set[str]:
    return {f"{service}: {_NUMBER.sub('', sentence)}" for service, sentence in lights.items()}


def measure(name: str, people: People) -> str:
    """Cause a fault, and return its line of the table."""
    fault, grid = FAULTS[name], people.grid
    before = quiet(people)
    usual, seen, stops = _usual(before), Seen(), grid.stops_of_leading()
    begun = time.monotonic()

    with ThreadPoolExecutor(1) as thread:
        for act, seconds in ((fault.begins, fault.lasts), (fault.ends, 0.0)):
            acting = thread.submit(act, grid)
            while not acting.done() or time.monotonic() - begun < seconds:
                lights, banners = people.lights(), people.banners()
                seen.take(time.monotonic() - begun, banners, lights, usual)
                time.sleep(_LOOK_SECONDS)
            acting.result()
    ended = time.monotonic()
    over = dict.fromkeys(("pages", "lights", "jobs"), ended)  # when each has been right again since
    wrong = set(over)
    while wrong or time.monotonic() - max(over.values()) < _QUIET_SECONDS:
        assert time.monotonic() - ended < _PATIENCE_SECONDS, f"not healed: {wrong} {people.lights()} {people.states()}"
        lights, banners = people.lights(), people.banners()
        seen.take(time.monotonic() - begun, banners, lights, usual)
        is_right = {"pages": not banners, "lights": lights["headline"] == people.headline, "jobs": people.agree()}
        for part, right in is_right.items():
            if not right:
                wrong.add(part)
            elif part in wrong:
                wrong.remove(part)
                over[part] = time.monotonic()
        time.sleep(_LOOK_SECONDS)
    healed = [f"{over[part] - ended:.1f}" for part in ("pages", "jobs", "lights")]
    return _row(name, people, seen, healed, grid.stops_of_leading() - stops)


def _row(name: str, people: People, seen: Seen, healed: Sequence[str], stops: int) -> str:
    banners = " ".join(f"{after:.1f} s: “{text}”" for after, text in seen.banners.values()) or "none"
    lights = " ".join(f"{after:.1f} s, *{service}*: {text}" for (service, _key), (after, text) in seen.lights.items())
    changed = [f"{people.head(id)}" for id, state in people.states().items() if state != people.jobs[id]]
    led = "yes" if not stops else f"no, {stops} times away"
    went_on = "; ".join(changed) or "all"
    differing = "".join(f"\n(banners differ, {line})" for line in seen.differing)
    return f"| {name} | {banners} | {lights or 'nothing'} | {' | '.join(healed)} | {led} | {went_on} |{differing}"


def quiet(people: People, seconds: float = _QUIET_SECONDS) -> dict[str, str]:
    """Return the lights when they have been as they usually are, or else the same, without a banner, for so long."""
    known, since = people.lights(), time.monotonic()
    while time.monotonic() - since < seconds:
        time.sleep(1)
        now = people.lights()
        if now["headline"] != (people.headline or known["headline"]) or people.banners():
            since = time.monotonic()
        known = now
    return known


def restored(people: People) -> str:
    """Return the line of a snapshot that is put back after a job was launched and another stopped."""
    _shell(os.environ["SNAPSHOT_SAVE"])
    people.stop(next(iter(people.jobs)))
    people.launch_lasting(1)
    return measure(RESTORED, people)


def launches(people: People) -> Iterator[str]:
    """Launch while each answer takes so long; yield the seconds until the pod exists and until the page says that it runs."""
    grid, session = people.grid, people.sessions["scientist"]
    for delay in (0.0, 1.0, 2.0, 4.0):
        grid.server.delay = delay
        time.sleep(20)
        taken = list[tuple[float, float]]()
        for number in range(LAUNCHES):
            begun = time.monotonic()
            id = people.launch(f"{delay:.0f} s, {number}")
            wait_until(lambda id=id: f"pod/job-{id}" in grid.pods(), 120, "a pod")  # type: ignore[misc]
            created = time.monotonic()
            wait_until(lambda id=id: session.state(id) == "Running", 120, "a running job")  # type: ignore[misc]
            taken.append((created - begun, time.monotonic() - begun))
            _print_requests(grid, begun)
            people.jobs[id] = "Running"
        pods, running = (median(each) for each in zip(*taken, strict=True))
        yield f"| {delay:.0f} s | {pods:.1f} s | {running:.1f} s |"
    grid.server.delay = 0.0


def _print_requests(grid: FaultyGrid, begun: float) -> None:
    """Print what the controller asked about the executions' objects since then, with the seconds at which each began and ended."""
    for asked in list(grid.server.requests):
        if asked.account == "controller" and asked.began >= begun and "/leases/" not in asked.path:
            times = f"{asked.began - begun:5.1f} {asked.ended - begun:5.1f}"
            print(f"  {times} {asked.method} {asked.path}", file=sys.stderr, flush=True)
    print(file=sys.stderr)


@contextmanager
def faulty(folder: Path) -> Iterator[FaultyGrid]:
    with cluster_of(FaultyGrid, folder) as grid:
        view: Any = json.loads(grid.kubectl("config", "view", "--raw", "--minify", "--flatten", "-o", "json"))
        grid.server = FaultyServer(view)
        grid.prepare()
        grid.manage("shell", "-c", _SLEEP)
        grid.start_nodes()
        grid.start_controller()
        grid.start_web()
        grid.start_proxy()
        yield grid


def main(names: Sequence[str]) -> None:
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # cut connections are meant
    with tempfile.TemporaryDirectory() as folder, faulty(Path(folder)) as grid:
        people = People(grid, {name: Session(grid, name) for name in ("operator", "scientist")})
        people.launch_lasting(JOBS)
        people.headline = quiet(people, _FIRST_SECONDS)["headline"]
        if not names or "launches" in names:
            print("| an answer takes | from the form to the pod | to *Running* |\n|---|---|---|")
            for line in launches(people):
                print(line, flush=True)
        print(
            "| fault | banners | *Platform health* | no banner after s | jobs right | lights | led on | jobs that went on |"
        )
        print("|---|---|---|---|---|---|---|---|", flush=True)
        for name in names or FAULTS:
            if name == RESTORED and "SNAPSHOT_RESTORE" in os.environ:
                print(restored(people), flush=True)
            elif name in FAULTS and name != RESTORED:
                print(measure(name, people), flush=True)
        for part in ("web", "controller"):
            if count := grid.output(part).count("Traceback"):
                print(f"{count} tracebacks in the log of {part}", flush=True)
        if keep := os.environ.get("KEEP_LOGS"):
            _shell(f"cp '{folder}'/*.log '{keep}'")


if __name__ == "__main__":
    main(sys.argv[1:])
