"""Hardware tiers: what a size of machine costs, whether it fits the nodes of its pool, and keeping places of it warm.

It owns prices, the tier doctor with its advice, what a new node of a pool will look like, and the placeholders of warm-up hours and
rush plans. Its rules are pure; others import the rule that they ask, most often `nodeshapes`, `shortages` and `tierdoctor`.
"""
