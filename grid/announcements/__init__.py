"""Announcements of operators to everybody, above all maintenance: a time in which nothing new is launched.

It owns when launches are refused and in which words (`rules`, `gate`), and telling the owners of running executions once each. Others
ask `gate` before a launch; the table of announcements is in `grid.models`.
"""
