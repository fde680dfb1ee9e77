"""Notifications: what somebody is told, and how it gets there.

`outbox` writes a notification in the transaction of what it tells. What leaves the page waits in the database: `deliveries` gives it out
and records what became of it, `sender` has it sent by `mail` or `webhook`, whose words are in `letters`.
"""

PUBLIC = ("addresses", "channels", "deliveries", "events", "letters", "outbox", "owner_messages", "sender")
