"""Alerts of an Alertmanager, and what is done about them: operators are told of them, and silence them.

Our own alert rules are in `grid.servicelevels`.
"""

PUBLIC = ("alert_notifier", "silence_sync", "silences", "webhook")
