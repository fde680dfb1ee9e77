"""The pages of projects: the list, one with its members, and the form in which its owner and admins change it.

It owns changing a person's role in a project, and what admins edit. Files, secrets and budgets of a project have pages
in their own rooms; others may import `forms`.
"""

PUBLIC = ("urls", "views")
