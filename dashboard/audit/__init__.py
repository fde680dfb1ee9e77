"""The page of the audit log: who did what, for admins and auditors, with a filter and a file for spreadsheets.

It owns reading entries, whose cost does not grow with the log, and puts them into the words of the objects' own histories. Only support
bundles import its `views`, for their part of the log.
"""

PUBLIC = ("urls", "views")
