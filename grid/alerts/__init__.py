"""Alerts of an Alertmanager, and what is done about them: operators are told of them, and silence them.

`webhook` keeps what an Alertmanager posts, `silences` says which are in force and records them, `alertmanager` speaks to its API,
`silence_sync` keeps both of one mind, and `alert_notifier` notifies operators. Others import `webhook` and `silences`; our own alert rules
are in `grid.servicelevels`.
"""

PUBLIC = ("alert_notifier", "alertmanager", "silence_sync", "silences", "webhook")
