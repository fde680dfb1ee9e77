"""The page of service levels: what was promised, what was attained, and how fast the error budget burns."""

PUBLIC = ("urls",)
