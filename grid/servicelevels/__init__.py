"""What the platform promises, measured over its own metrics: service levels, the alerts on them, and files made from both; pure."""

PUBLIC = ("files", "levels")
