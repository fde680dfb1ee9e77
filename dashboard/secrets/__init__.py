"""The pages of stored secrets, one's own and a project's: names are shown, values never.

It owns the form that takes a value, typed or from a file, and says what uses a secret before it is deleted. Others may import `forms`,
as the form of a remote repository does.
"""

PUBLIC = ("forms", "urls")
