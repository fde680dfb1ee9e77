"""The files for Prometheus and Grafana are those of the definitions, and a real Prometheus takes them, alerts, and answers the page."""

import http.client
import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import call_command
from prometheus_client import Histogram

from grid.configuration.servicelevels import LEVEL_WINDOW, OBJECTIVES, THRESHOLDS, WINDOWS
from grid.metrics.history import PrometheusLevels
from grid.observability import telemetry
from grid.servicelevels.alerts import BURN_RATES, PLAIN_ALERTS, AlertRule, burn_alerts
from grid.servicelevels.files import DASHBOARD_FILE, OPERATOR_FILE, RULES_FILE, monitoring_files
from grid.servicelevels.levels import LEVELS, LevelTarget, default_targets, status_of
from tests.conftest import People
from tests.servicelevels.incidents import BAD, BROKEN_PROMISES, INCIDENTS
from tests.support.ports import free_ports
from tests.support.settings import change
from tests.support.waiting import wait_until
from tests.test_doc_links import anchors

ROOT = Path(__file__).parents[2]
MONITORING = ROOT / "deploy" / "monitoring"
PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool is missing: install Debian's package prometheus")
TARGETS = default_targets()
BY_ID = {target.level.id: target for target in TARGETS}
ALERTS = {alert.name: alert for alert in (*burn_alerts(TARGETS), *PLAIN_ALERTS)}
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


@pytest.mark.parametrize("name", [RULES_FILE, DASHBOARD_FILE, OPERATOR_FILE])
def test_the_committed_files_are_those_of_the_definitions(name: str) -> None:
    stored = (MONITORING / name).read_text()
    assert stored == monitoring_files(TARGETS)[name], "run: manage.py monitoring deploy/monitoring --defaults"


def test_the_command_writes_the_values_of_the_central_configuration(people: People, tmp_path: Path) -> None:
    change(OBJECTIVES["pages"].key, "9990", actor=people.admin)
    change(THRESHOLDS["start-time"].key, "100", actor=people.admin)
    change(WINDOWS["workspaces"].key, "7", actor=people.admin)
    call_command("monitoring", str(tmp_path / "new"), stdout=StringIO())
    rules = (tmp_path / "new" / RULES_FILE).read_text()
    assert 'ratio_1h{level="pages"} > 0.0144\n' in rules
    assert 'le=~"60|60.0"' in rules
    assert 'le=~"300|300.0"' not in rules
    assert 'ratio_1h{level="workspaces"} > 0.0168\n' in rules
    panels = json.loads((tmp_path / "new" / DASHBOARD_FILE).read_text())["panels"]
    left = {panel["title"]: panel["targets"][0]["expr"] for panel in panels if "left" in panel["title"]}
    assert "[7d]" in left["Availability of workspaces: budget of 7 days left"]
    assert "[30d]" in left["Availability of pages: budget of 30 days left"]


def test_alerts_have_an_incident_and_documented_steps() -> None:
    assert set(INCIDENTS) == {alert.name for alert in PLAIN_ALERTS}
    assert set(BROKEN_PROMISES) == {level.id for level in LEVELS}
    headings = anchors((ROOT / "docs" / "alerts.md").read_text())
    assert {alert.name: alert.runbook for alert in ALERTS.values() if alert.runbook not in headings} == {}


def test_measurable_thresholds_are_buckets_of_their_histogram() -> None:
    collectors: Any = telemetry.REGISTRY._collector_to_names
    histograms = [metric for metric in collectors if isinstance(metric, Histogram)]
    measured = {
        (level.id, metric._name) for level in LEVELS for metric in histograms if f"{metric._name}_bucket" in level.bad
    }
    assert len(measured) == sum(bool(level.steps) for level in LEVELS)
    buckets = {metric._name: set(metric._kwargs["buckets"]) for metric in histograms}
    for id, name in measured:
        level = BY_ID[id].level
        assert {step / level.steps_of_second for step in level.steps} <= buckets[name], id


def test_threshold_between_buckets_uses_the_smaller_one() -> None:
    level = BY_ID["start-time"].level
    assert LevelTarget(level, 9500, 299).measured_threshold == 120
    assert LevelTarget(level, 9500, 299).promise == "95 % of starts run within 2 min of their launch."
    assert BY_ID["event-to-screen"].promise == "99 % of updates reach the browser within 1 s."
    assert BY_ID["queue-length"].promise == "In 95 % of the time no more than 100 executions are queued."


def test_every_alert_can_fire_at_the_lowest_objective() -> None:
    lowest = [
        LevelTarget(level, OBJECTIVES[level.id].range.minimum, level.threshold, days)
        for level in LEVELS
        for days in (LEVEL_WINDOW.range.minimum, LEVEL_WINDOW.range.maximum)
    ]
    assert all(rate.factor(target) * target.budget < 1 for target in lowest for rate in BURN_RATES)


@pytest.mark.parametrize(
    ("days", "factors", "gone"),
    [(7, [3.36, 1.4, 1], "2 days"), (30, [14.4, 6, 1], "2 days"), (90, [18, 18, 3], "5 days")],
)
def test_longer_window_may_burn_faster_within_what_fires(days: int, factors: list[float], gone: str) -> None:
    target = LevelTarget(BY_ID["start-time"].level, 9500, 300, days)
    assert [round(rate.factor(target), 6) for rate in BURN_RATES] == factors
    fast = burn_alerts([target])[0].summary
    assert fast.endswith(f"{factors[0]:g} times as fast as allowed; in {gone} the budget of {days} days is gone.")


def test_the_objects_for_the_operator_have_the_same_rules() -> None:
    rule, monitor = yaml.safe_load_all((MONITORING / OPERATOR_FILE).read_text())
    assert rule["spec"] == yaml.safe_load((MONITORING / RULES_FILE).read_text())
    assert monitor["kind"] == "PodMonitor"


def _expected(alert: AlertRule, values: Mapping[str, str], labels: Mapping[str, str]) -> dict[str, Any]:
    marks = dict(values) | {f"{{{{ $labels.{name} }}}}": value for name, value in labels.items()}
    description = alert.description
    for mark, text in marks.items():
        description = description.replace(mark, text)
    known = {"level": alert.level} if alert.level else {}
    return {
        "exp_labels": {"severity": alert.severity, **known, **labels},
        "exp_annotations": {"summary": alert.summary, "description": description, "runbook": alert.runbook},
    }


def _checked(alert: AlertRule, at: int, *expected: dict[str, Any]) -> dict[str, Any]:
    return {"alertname": alert.name, "eval_time": f"{at}m", "exp_alerts": list(expected)}


def _group(name: str, series: Mapping[str, str], checks: list[dict[str, Any]]) -> dict[str, Any]:
    values = [{"series": key, "values": text} for key, text in series.items()]
    return {"name": name, "interval": "1m", "input_series": values, "alert_rule_test": checks}


def _unit_tests(rules: Path) -> dict[str, Any]:
    """Return promtool's test file: in each group an incident comes and goes."""
    groups = []
    silent_after = {"5m": 10, "30m": 40, "6h": 370}
    for target in TARGETS:
        share, series = BROKEN_PROMISES[target.level.id]
        checks = []
        for alert, rate in zip(burn_alerts([target]), BURN_RATES, strict=True):
            expected = _expected(alert, {"{{ $value | humanizePercentage }}": share}, {})
            checks += [_checked(alert, BAD, expected), _checked(alert, BAD + silent_after[rate.short])]
        groups.append(_group(target.level.id, series, checks))
    for name, incident in INCIDENTS.items():
        alert = ALERTS[name]
        checks = [_checked(alert, 60, _expected(alert, incident.values, incident.labels)), _checked(alert, 90)]
        groups.append(_group(name, incident.series, checks))
    few = {series: values.replace("+100x", "+0x") for series, values in BROKEN_PROMISES["start-time"][1].items()}
    few['compute_grid_start_seconds_count{ran="true",kind="job"}'] = f"0x{BAD - 10} 0+1x9"
    groups.append(_group("few", few, [_checked(alert, BAD) for alert in burn_alerts([BY_ID["start-time"]])]))
    return {"rule_files": [str(rules)], "evaluation_interval": "10m", "tests": groups}


@needs_promtool
def test_prometheus_takes_the_rules() -> None:
    _promtool("check", "rules", str(MONITORING / RULES_FILE))


@needs_promtool
@pytest.mark.slow
def test_every_alert_fires_and_falls_silent_again(tmp_path: Path) -> None:
    tests = tmp_path / "tests.yaml"
    tests.write_text(yaml.safe_dump(_unit_tests(MONITORING / RULES_FILE)))
    _promtool("test", "rules", str(tests))


def _promtool(*arguments: str) -> None:
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, *arguments], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, (done.stdout + done.stderr)[:5000]


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
