"""Stored secrets of people and projects: setting and deleting them, and who may get which.

It owns their encryption at rest and hands their values out for one purpose only: the objects of an execution. Others import
`storedsecrets`; no page ever shows a value.
"""

PUBLIC = ("storedsecrets",)
