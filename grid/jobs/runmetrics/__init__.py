"""The metrics that programs of jobs write as JSON lines: read from their logs (`lines`), thinned and kept (`store`), while a run runs and
at its end (`collector`)."""
