"""The metrics that programs of jobs write as JSON lines: read from their logs, thinned, and kept.

`lines` says what a line measures, `place` reads what is new in a log, `series` keeps a metric's values within bounds, and `store` writes
them. `collector` does all this while a run runs and at its end.
"""
