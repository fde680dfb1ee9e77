"""Notifications: what somebody is told, and how it gets there.

`events` says what is told, `outbox` writes it in the transaction of what it tells. What leaves the page waits in the database:
`deliveries` gives it out and records what became of it, `sender` has it sent by `mail` or `webhook`, whose words are in `letters`.
`channels` says where a person can be told, and stores the target of a webhook. Others import `outbox` to tell somebody something, and
`channels`, `addresses` and `events` for people's choices.
"""

PUBLIC = ("addresses", "channels", "deliveries", "events", "letters", "outbox", "owner_messages", "sender")
