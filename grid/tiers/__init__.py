"""Hardware tiers: whether a size of machine fits the nodes of its pool, and keeping places of it warm.

What a size costs is the business of `grid.executions.prices`, and whether a pod fits a node that of `grid.diagnosis`.
"""

PUBLIC = (
    "oddsizes", "placeholders", "pooltemplates", "rightsize", "rush", "rushplans", "tierdoctor", "tierrequests", "warmhours",
)  # fmt: skip
