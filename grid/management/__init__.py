"""The commands of `manage.py`, and what they are made of: the supervisor, demo data, the files in `var/`.

It composes all other rooms of `grid`, and is where the processes begin. Nothing imports it; Django finds the commands by their place.
"""
