"""Editing what admins decide: tiers, environments, projects and the knowledge base, by the same views and forms.

It owns the list, form, archive and undo pages that differ only in their `EditedKind`. The rooms of what is edited import the base form
and the views where theirs differ; they own their tables and words.
"""
