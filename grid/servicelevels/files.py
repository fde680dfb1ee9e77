"""The files for Prometheus, Grafana and Prometheus' operator, made from the definitions."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from grid.servicelevels.alerts import EVENTS, PLAIN_ALERTS, PLATFORM_NAMESPACE, RATIO, WINDOWS, AlertRule, burn_alerts
from grid.servicelevels.grafana import dashboard
from grid.servicelevels.levels import LevelTarget

RULES_FILE, DASHBOARD_FILE = "compute-grid-rules.yaml", "compute-grid-dashboard.json"
OPERATOR_FILE = "prometheus-operator.yaml"
_METRICS_PORT = 9090
_HEAD = "# Made by `manage.py monitoring` from grid/servicelevels/; do not edit.\n"


def monitoring_files(targets: Sequence[LevelTarget]) -> dict[str, str]:
    """Return the text of each file by name."""
    rules = rule_groups(targets)
    return {
        RULES_FILE: _HEAD + _yaml(rules),
        DASHBOARD_FILE: json.dumps(dashboard(targets), indent=2) + "\n",
        OPERATOR_FILE: _HEAD + "".join(f"---\n{_yaml(manifest)}" for manifest in _operator_objects(rules)),
    }


def rule_groups(targets: Sequence[LevelTarget]) -> dict[str, Any]:
    """Return the recording and alerting rules, as a rule file of Prometheus has them."""
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
        step = step_of(window)
        rules.append({"record": f"{RATIO}_{window}", "expr": target.error_ratio(window, step), "labels": labels})
        if window in ("1h", "6h", "3d"):
            rules.append({"record": f"{EVENTS}_{window}", "expr": target.total(window, step), "labels": labels})
    return rules


def step_of(window: str) -> str:
    """Return how often a gauge is looked at within a window: each minute, or in long ones each five."""
    return "5m" if window.endswith(("d", "h")) and window != "1h" else "1m"


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
