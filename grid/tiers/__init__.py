"""Hardware tiers: what a size of machine costs, whether it fits the nodes of its pool, and keeping places of it warm.

It owns prices, the tier doctor with its advice, the remembered templates of pools, and the placeholders of warm-up hours and rush plans.
Others import the rule that they ask, most often `prices` and `tierdoctor`; whether a pod fits a node is `grid.diagnosis`'s.
"""

PUBLIC = (
    "placeholders",
    "pooltemplates",
    "rightsize",
    "rush",
    "rushplans",
    "tierdoctor",
    "tieroverlap",
    "tierrequests",
    "warmhours",
)
