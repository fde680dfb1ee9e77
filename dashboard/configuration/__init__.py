"""The page of the central configuration: every key with its meaning, bounds, default and the value in force.

It owns what a change would do at once, in words, before it is made (`setting_effects`). No other room imports it;
the settings themselves are in `grid.configuration`.
"""

PUBLIC = ("urls",)
