"""The pages of projects: the list, and of each an overview of what runs in it, its members, and the settings for its owner and admins.

It owns changing a person's role in a project, and what admins edit. Files, secrets and budgets of a project have pages
in their own rooms; others may import `forms`.
"""

PUBLIC = ("urls", "views.projects")
