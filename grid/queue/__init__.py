"""The queue: what may start at all, who gets slots now, in which order, and how long everybody else is expected to wait.

It owns the gate, which says whether something may start whatever is free, and the quota rules, which decide on a snapshot without I/O. It
also owns the admission that writes their answer, what operators decide about the order, and the estimate of waits. Who launches asks
`launches` or `snapshot`; others may read `quota`, `snapshot` and the expected waits; only admission starts anything.
"""

PUBLIC = (
    "admission", "gate", "launches", "ordering", "queuewatch", "snapshot", "takeover", "wait_estimate.capacity", "wait_estimate.estimate",
    "wait_estimate.inputs", "wait_estimate.observing", "wait_estimate.outcomes", "wait_estimate.reading", "waitkeeper",
)  # fmt: skip
