"""How long executions take to start, on pages: the bars of one start, and the table and charts by tier, environment, pool or image.

It owns the words of each phase beside its usual time. The execution's page imports `startup_records` and `viewmodels.startup`.
"""
