"""Alerts on pages: the live list with what to do about each, silences, and the line about critical ones on every page of those who
operate.

It owns the address that an Alertmanager posts to, and shows the steps of `docs/alerts.md`. The frame imports `page` for its line.
"""

PUBLIC = ("page", "urls")
