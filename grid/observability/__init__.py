"""What a process says of itself: counters, traces, and the context and verbosity of its lines of log.

It owns the names of our metrics (`telemetry`), the spans of a request (`tracing`, whose SDK is loaded only when it is on), and who a
line is about (`logcontext`). Everybody may import it; `grid.runtime.metrics` and the controller serve what is counted here.
"""

PUBLIC = ("logcontext", "telemetry", "tracing")
