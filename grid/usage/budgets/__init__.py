"""Budgets of projects: their rules, what was spent of them, whom that is told, what it stops, and whether a project takes launches."""
