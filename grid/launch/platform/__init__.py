"""Looks after the health of the platform: the leading controller reads, judges, and records incidents."""
