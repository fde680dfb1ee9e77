"""Editing what admins decide: tiers, environments, projects and the knowledge base, by the same views and forms.

It owns the list, form, archive and undo pages, the base form and `EditedKind`. The room of what is edited has its `EditedKind`,
with the form and with what it adds to the pages; it owns its tables and words.
"""

PUBLIC = ("forms", "urls", "viewmodel", "views")
