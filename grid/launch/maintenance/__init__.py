"""Maintenance: a time in which nothing new is launched, as an operator announces it."""
