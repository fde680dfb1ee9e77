"""The pages of jobs: their runs and sweeps, live, with results, metrics and what each run was launched with; and their schedules.

It owns a job's fields in the launch form and on its own pages, and the comparison of runs. `kind` is the face of a run's attempts on the
pages that all executions have. Others may import `job_records`, `metric_records` and `forms.jobs`.
"""

PUBLIC = (
    "forms.schedules",
    "kind",
    "metric_records",
    "pages.job",
    "pages.jobs",
    "ran_with_records",
    "urls",
    "viewmodels.ran_with",
)
