"""The page of service levels: what was promised, what was attained, and how fast the error budget burns.

It owns reading how levels stood, once for everybody and beside the pages. No other room imports it; the levels are defined in
`grid.servicelevels`.
"""

PUBLIC = ("urls",)
