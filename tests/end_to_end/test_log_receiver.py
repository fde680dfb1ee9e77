"""Logs of a real job reach a real receiver that is away at first, past a controller that is killed: each line, in order.
The new controller logs in detail what an operator has asked the old one for."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.end_to_end.grid import Grid, Session
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
SECRET = "Bearer 0815-hush-hush"
COMMAND = "for i in $(seq 40); do echo line $i of 40; sleep 0.5; done; echo the last line"


@dataclass
class Receiver:
    """Keeps the lines of each execution in their order; 503 is answered while it `is_away`."""

    is_away: bool = True
    asked: int = 0
    refused: list[str] = field(default_factory=list)
    lines: dict[str, list[str]] = field(default_factory=dict)

    def take(self, body: bytes) -> None:
        for resource in json.loads(body)["resourceLogs"]:
            names = {each["key"]: each["value"]["stringValue"] for each in resource["resource"]["attributes"]}
            lines = self.lines.setdefault(names["compute_grid.execution.id"], [])
            lines += [record["body"]["stringValue"] for record in resource["scopeLogs"][0]["logRecords"]]


@contextmanager
def serving(store: Receiver) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body, store.asked = self.rfile.read(int(self.headers["Content-Length"])), store.asked + 1
            if not store.is_away:
                if self.headers["Authorization"] != SECRET or self.path != "/v1/logs":
                    store.refused.append(self.path)
                store.take(body)
            self.send_response(503 if store.is_away else 200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def test_job_lines_arrive_despite_late_receiver_and_killed_controller(
    grid: Grid, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store, given = Receiver(), tmp_path / "authorization"
    given.write_text(f"{SECRET}\n")
    own = Grid.environment
    with serving(store) as url:
        settings = {
            "GRID_LOG_RECEIVER_URL": url,
            "GRID_LOG_RECEIVER_AUTHORIZATION_FILE": str(given),
            "GRID_LOG_LINK": "https://logs.example.com/?id={execution}",
        }
        monkeypatch.setattr(Grid, "environment", lambda self: own(self) | settings)
        grid.start()
        person = Session(grid, "scientist")
        fields = {"kind": "job", "title": "Lines", "project": "churn", "tier": "tiny", "environment": "dask-script"}
        job = person.launch({**fields, "command": COMMAND})
        person.wait_for_line(job, "line 3 of", seconds=400)
        wait_until(lambda: store.asked > 0, 60, "a request of the receiver")
        operator = Session(grid, "operator")
        asked = {"subject": "execution", "execution": job, "reason": "Where are its lines?"}
        operator.post("/verbose-logs/", asked, page="/verbose-logs/")
        grid.kill_part("controller")
        store.is_away = False
        wait_until(lambda: "the last line" in store.lines.get(job, ()), 200, "the last line")
    log = (grid.var / "log" / "controller.log").read_text()
    debug = [line for line in log.splitlines() if " DEBUG " in line]
    assert any(f"execution={job}" in line and "asked the API server" in line for line in debug), log
    assert all(f"execution={job}" in line for line in debug), "other lines are as ever"
    lines = [line for line in store.lines[job] if line.startswith("line ")]
    # The new controller sends again what the old one had sent without noting it.
    assert list(dict.fromkeys(int(line.split()[1]) for line in lines)) == list(range(1, 41))
    assert not store.refused
    assert f"https://logs.example.com/?id={job}" in person.get(f"/executions/{job}/?tab=log")
    assert SECRET.split()[1] not in grid.output
