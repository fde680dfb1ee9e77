"""The questions of the page of service levels, answered by a real Prometheus."""

import http.client
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path

import pytest

from grid.metrics.history import PrometheusLevels
from grid.servicelevels.levels import default_targets, status_of
from tests.support.ports import free_ports
from tests.support.waiting import wait_until

PROGRAMS = {name: shutil.which(name) for name in ("prometheus", "promtool")}
STEP, HOURS = 300, 30
END = datetime(2026, 3, 1, 12, tzinfo=UTC)
# Each step: how much a counter grows; of a gauge, its value.
COUNTERS = {
    'compute_grid_start_seconds_count{ran="true"}': 10,
    'compute_grid_start_seconds_bucket{ran="true",le="300.0"}': 9,
    'compute_grid_execution_states_entered_total{state="succeeded"}': 100,
    'compute_grid_execution_failures_total{state="error",reason="pod_gone"}': 1,
    'compute_grid_execution_failures_total{state="error",reason="over_quota_timeout"}': 5,
    'compute_grid_http_request_seconds_count{code="200"}': 99,
    'compute_grid_http_request_seconds_count{code="500"}': 1,
}
GAUGES = {"compute_grid_controller_leads": 1}


def _history() -> str:
    lines = []
    first = END - timedelta(hours=HOURS)
    for number in range(HOURS * 3600 // STEP + 1):
        at = int(first.timestamp()) + number * STEP
        lines += [(f"{name} {grows * number} {at}", name) for name, grows in COUNTERS.items()]
        lines += [(f"{name} {value} {at}", name) for name, value in GAUGES.items()]
    # OpenMetrics wants a metric's lines together; the sort keeps their times in order.
    ordered = sorted(lines, key=lambda line: line[1])
    return "\n".join(line for line, _ in ordered) + "\n# EOF\n"


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    prometheus, promtool = PROGRAMS["prometheus"], PROGRAMS["promtool"]
    if not prometheus or not promtool:
        pytest.skip("prometheus or promtool is missing: install Debian's package prometheus")
    (tmp_path / "history").write_text(_history())
    (tmp_path / "prometheus.yml").write_text("{}\n")
    data = str(tmp_path / "data")
    made = ["tsdb", "create-blocks-from", "openmetrics", str(tmp_path / "history"), data]
    subprocess.run([promtool, *made], check=True, capture_output=True, timeout=60)
    port = free_ports()
    options = [f"--config.file={tmp_path / 'prometheus.yml'}", f"--storage.tsdb.path={data}"]
    options += [f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=100y"]
    process = subprocess.Popen([prometheus, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: _is_ready(port), what="Prometheus to be ready")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _is_ready(port: int) -> bool:
    with suppress(OSError), closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as asking:
        asking.request("GET", "/-/ready")
        return asking.getresponse().status == HTTPStatus.OK
    return False


@pytest.mark.slow
def test_days_and_burn_rates_match_a_real_prometheus(address: str) -> None:
    targets = default_targets()
    read = PrometheusLevels(address).read(targets, END)
    statuses = {
        target.level.id: status_of(target, read[target.level.id].days, read[target.level.id].burn_ratio)
        for target in targets
        if target.level.id in read
    }
    attained = {id: round(status.attained, 4) for id, status in statuses.items() if status.attained is not None}
    assert attained == {"start-time": 0.9, "queue-time": 1, "queue-length": 1, "failure-rate": 0.99, "pages": 0.99}
    assert {len(status.days) for status in statuses.values()} == {2}
    assert statuses["start-time"].burn == pytest.approx(2)
    assert statuses["pages"].burn == pytest.approx(2)
    assert statuses["queue-length"].burn == 0
    later = END + timedelta(days=10)
    short = [replace(target, window_days=7) if target.level.id == "pages" else target for target in targets]
    read = PrometheusLevels(address).read(short, later)
    assert "pages" not in read, "nothing was counted within its own window"
    assert read["start-time"].days
