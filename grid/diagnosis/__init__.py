"""Why something waits or failed, in words, with the evidence and who can act; and descriptions as `kubectl describe` writes them. Pure.

It owns the reading of pods, events, scheduler messages, exit codes, lines of logs and reports of executors. It also owns the placement
of a pod on each node (`placement`), what a new node of a pool will look like, and how long each step of a start took.
It knows no framework and asks nobody. Others hand it objects and import `diagnosis`, `requests`, `launchfit`, `shortages`, `logfindings`
and `describe`.
"""

PUBLIC = (
    "autoscalers", "beside", "clusters", "containers", "describe", "diagnosis", "exits", "held", "images", "karpenter", "launchfit",
    "launchplaces", "logfindings", "loglevels", "nodeimages", "nodeshapes", "nodetroubles", "placement", "placement.obstacles",
    "placement.volumes", "places", "pods", "refusals", "remotetroubles", "requests", "resources", "room", "run_report", "selectors",
    "shortages", "startup", "startupevents",
)  # fmt: skip
