"""The files for Prometheus, Grafana and Prometheus' operator, made from the definitions."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from grid.core.translation import gettext as _
from grid.servicelevels.alerts import EVENTS, PLAIN_ALERTS, PLATFORM_NAMESPACE, RATIO, WINDOWS, AlertRule, burn_alerts
from grid.servicelevels.levels import LevelTarget

RULES_FILE, DASHBOARD_FILE = "compute-grid-rules.yaml", "compute-grid-dashboard.json"
OPERATOR_FILE = "prometheus-operator.yaml"
_METRICS_PORT = 9090
_HEAD = "# Made by `manage.py monitoring` from grid/servicelevels/; do not edit.\n"


def monitoring_files(targets: Sequence[LevelTarget]) -> dict[str, str]:
    rules = rule_groups(targets)
    return {
        RULES_FILE: _HEAD + _yaml(rules),
        DASHBOARD_FILE: json.dumps(dashboard(targets), indent=2) + "\n",
        OPERATOR_FILE: _HEAD + "".join(f"---\n{_yaml(manifest)}" for manifest in _operator_objects(rules)),
    }


def rule_groups(targets: Sequence[LevelTarget]) -> dict[str, Any]:
    # In one group: its rules are evaluated one after the other, so an alert sees what was just recorded.
    levels = [rule for target in targets for rule in (*_recorded(target), *map(_alert, burn_alerts([target])))]
    return {
        "groups": [
            {"name": "compute-grid-levels", "rules": levels},
            {"name": "compute-grid", "rules": [_alert(alert) for alert in PLAIN_ALERTS]},
        ]
    }


def _recorded(target: LevelTarget) -> list[dict[str, Any]]:
    labels = {"level": target.level.id}
    rules = []
    for window in WINDOWS:
        step = "5m" if window in ("6h", "3d") else "1m"  # how often a gauge is looked at
        rules.append({"record": f"{RATIO}_{window}", "expr": target.error_ratio(window, step), "labels": labels})
        if window in ("1h", "6h", "3d"):
            rules.append({"record": f"{EVENTS}_{window}", "expr": target.total(window, step), "labels": labels})
    return rules


def _alert(alert: AlertRule) -> dict[str, Any]:
    labels: dict[str, str] = {"severity": alert.severity}
    if alert.level:
        labels["level"] = alert.level
    lasts = {} if alert.lasts == "0s" else {"for": alert.lasts}
    annotations = {"summary": alert.summary, "description": alert.description, "runbook": alert.runbook}
    return {"alert": alert.name, "expr": alert.expression, **lasts, "labels": labels, "annotations": annotations}


def _operator_objects(rules: Mapping[str, Any]) -> list[dict[str, Any]]:
    names = {"app.kubernetes.io/name": "compute-grid"}
    metadata = {"name": "compute-grid", "namespace": PLATFORM_NAMESPACE, "labels": names}
    components = {"key": "app.kubernetes.io/component", "operator": "In", "values": ["web", "proxy", "controller"]}
    monitor = {
        "selector": {"matchLabels": names, "matchExpressions": [components]},
        "podMetricsEndpoints": [{"portNumber": _METRICS_PORT, "path": "/metrics", "interval": "30s"}],
    }
    api = "monitoring.coreos.com/v1"
    return [
        {"apiVersion": api, "kind": "PrometheusRule", "metadata": metadata, "spec": rules},
        {"apiVersion": api, "kind": "PodMonitor", "metadata": metadata, "spec": monitor},
    ]


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, and no anchors for what occurs twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def _yaml(value: Any) -> str:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=10_000, allow_unicode=True)


_SOURCE = {"type": "prometheus", "uid": "${source}"}
_WIDTH, _HEIGHT = 24, 7

_STARTS = 'sum by (le) (rate(compute_grid_start_seconds_bucket{ran="true"}[1h]))'
_QUANTILES = ((0.5, "p50"), (0.9, "p90"), (0.99, "p99"))
# Title, unit, expressions with their legends.
_PLATFORM: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...] = (
    (_("Start-up time"), "s", tuple((f"histogram_quantile({share}, {_STARTS})", name) for share, name in _QUANTILES)),
    (_("Executions that are not over"), "short", (("sum by (state) (compute_grid_executions)", "{{state}}"),)),
    (_("Longest wait in the queue"), "s", (("max(compute_grid_queue_oldest_seconds)", _("oldest")),)),
    (
        _("Failures by reason"),
        "short",
        (("sum by (state, reason) (increase(compute_grid_execution_failures_total[1h]))", "{{state}} {{reason}}"),),
    ),
    (
        _("Requests to the API server"),
        "reqps",
        (("sum by (code) (rate(compute_grid_api_request_seconds_count[5m]))", "{{code}}"),),
    ),
    (_("Caches behind the cluster"), "s", (("max by (cache) (compute_grid_cache_behind_seconds)", "{{cache}}"),)),
    (
        _("Longest wait for the event loop"),
        "s",
        (("max by (instance) (compute_grid_loop_longest_wait_seconds)", "{{instance}}"),),
    ),
    (_("Database errors"), "short", (("sum(increase(compute_grid_database_errors_total[5m]))", _("errors")),)),
)


def dashboard(targets: Sequence[LevelTarget]) -> dict[str, Any]:
    panels: list[dict[str, Any]] = []
    firing = ('ALERTS{alertname=~"ComputeGrid.+",alertstate="firing"}', "{{alertname}} {{severity}}")
    panels.append(_panel(_("Alerts that fire"), "short", [firing], x=0, y=0, width=_WIDTH))
    y = _HEIGHT
    for target in targets:
        panels += _of_level(target, y)
        y += _HEIGHT
    for index, (title, unit, asked) in enumerate(_PLATFORM):
        x = index % 2 * _WIDTH // 2
        panels.append(_panel(title, unit, asked, x=x, y=y + index // 2 * _HEIGHT, width=_WIDTH // 2))
    for number, panel in enumerate(panels, start=1):
        panel["id"] = number
    source = {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    return {
        "uid": "compute-grid",
        "title": "Compute Grid",
        "tags": ["compute-grid"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "1m",
        "time": {"from": "now-24h", "to": "now"},
        "templating": {"list": [source]},
        "panels": panels,
    }


def _of_level(target: LevelTarget, y: int) -> list[dict[str, Any]]:
    level, budget = target.level, f"{target.budget:g}"
    left = f"1 - ({target.error_ratio(f'{target.window_days}d', '1h')}) / {budget}"
    burns = [
        (f'{RATIO}_{window}{{level="{level.id}"}} / {budget}', _("over {range}", range=window))
        for window in ("5m", "1h", "6h", "3d")
    ]
    title = _("{level}: budget of {days} days left", level=level.title, days=target.window_days)
    stat = _panel(title, "percentunit", [(left, _("left"))], x=0, y=y, width=6)
    stat["type"], stat["description"] = "stat", target.promise
    stat["targets"][0]["instant"] = True
    stat["fieldConfig"]["defaults"]["thresholds"] = {
        "mode": "absolute",
        "steps": [{"color": "red", "value": None}, {"color": "orange", "value": 0}, {"color": "green", "value": 0.25}],
    }
    title = _("{level}: burn rate (1 is allowed)", level=level.title)
    return [stat, _panel(title, "none", burns, x=6, y=y, width=_WIDTH - 6)]


def _panel(title: str, unit: str, asked: Sequence[tuple[str, str]], *, x: int, y: int, width: int) -> dict[str, Any]:
    return {
        "type": "timeseries",
        "title": title,
        "datasource": _SOURCE,
        "gridPos": {"x": x, "y": y, "w": width, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": _SOURCE, "expr": expression, "legendFormat": legend}
            for index, (expression, legend) in enumerate(asked)
        ],
    }
