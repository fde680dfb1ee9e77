"""Alerts on pages: the live list with what to do about each, silences, and the line about critical ones on operators' pages.

It owns the address that an Alertmanager posts to, and shows the steps of `docs/alerts.md`.
"""

PUBLIC = ("page", "urls")
