"""The pages of project files in Git: folders, files, history, uploading, moving and deleting, and the project's remote repository.

It owns how a file or a notebook is shown without running anything of it. Others may import `viewmodels`, and the part of the project's
form that says where files are kept (`forms`).
"""

PUBLIC = ("forms", "urls", "viewmodels.files")
