"""Notifications: `events` says what is told, `outbox` writes it in the transaction of what it tells, `sender` sends what left the page."""
