"""The pages of jobs: their runs and sweeps, live, with results, metrics and what each run was launched with; and their schedules.

It owns a job's fields in the launch form and on its own pages, and the comparison of runs. `kind` is the face of a run's attempts on the
pages that all executions have. Others may import `run_records` and the pages.
"""

PUBLIC = (
    "forms.jobs", "job_records", "kind", "pages.job", "run_records", "urls", "viewmodels.job_rows", "viewmodels.jobs",
    "viewmodels.runs",
)  # fmt: skip
