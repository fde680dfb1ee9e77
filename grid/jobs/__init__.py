"""Jobs: their runs with retries and sweeps, their schedules, and the metrics that their programs write.

It owns how an open run moves on (`runsteps` decides, `jobruns` does), when a schedule is due by the clocks of its time zone, and the
reading of metrics from logs in `runmetrics`. Others import `jobs`, `schedules` and `jobsettings`; the attempts of a run are executions
like any other.
"""

PUBLIC = (
    "commands", "deadlines", "jobrows", "jobruns", "jobs", "jobsettings", "runmetrics.collector", "runmetrics.lines",
    "runsteps", "schedulehistory", "scheduler", "schedules", "scheduletimes",
)  # fmt: skip
