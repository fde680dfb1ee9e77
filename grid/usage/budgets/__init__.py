"""Budgets of projects: `rules` says what a budget means, `spending` sums up what was spent, `keeper` counts it in the controller, tells
people and stops what is to be stopped, and `closing` says whether a project takes launches."""
