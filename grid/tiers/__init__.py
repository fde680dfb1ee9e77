"""Hardware tiers: whether a size of machine fits the nodes of its pool, and keeping places of it warm.

It owns the tier doctor with its advice, the remembered templates of pools, and the placeholders of warm-up hours and rush plans.
Others import the rule that they ask, most often `tierdoctor`; what a size costs is the business of `grid.executions.prices`, and whether a
pod fits a node that of `grid.diagnosis`.
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
