"""Notifications: what somebody is told, and how it gets there.

`outbox` writes a notification in the transaction of what it tells. What leaves the page waits in the database: `deliveries` gives it out
and records what became of it, `sender` sends it as mail or to a webhook; its words are in `letters`.
"""

PUBLIC = ("channels", "deliveries", "letters", "outbox", "sender")
