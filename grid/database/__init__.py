"""What the database needs beyond Django: threads for its work, triggers with the feed of what was written, and words for its troubles.

It owns how queries are kept off the event loop (`threads`), and how processes learn of each other's writes (`triggers`, `changefeed`). It
also owns what is encrypted at rest, how the leader asks (`seam`), how periodic tasks run (`periodic`), turns, and queries that are compiled
once (`prepared`). Others may import all of it; the tables themselves are in `grid.models`.
"""

PUBLIC = (
    "changefeed", "computing", "encryption", "periodic", "prepared", "seam", "threads", "triggers", "trouble", "turns", "write_probe",
)  # fmt: skip
