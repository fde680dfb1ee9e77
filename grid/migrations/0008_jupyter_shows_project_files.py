"""JupyterLab is started in HOME, which is not the project's folder any more: tell it where the project's files are.

Environments that were made before would show an empty HOME.
"""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

BASE_URL = "--ServerApp.base_url="
ROOTS = ("root_dir=", "root-dir=", "notebook_dir=", "notebook-dir=")


def name_the_folder(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    environments = apps.get_model("grid", "Environment").objects
    for environment in environments.filter(kind="workspace"):
        command = [str(part) for part in environment.command]
        is_jupyter = any(part.startswith(BASE_URL) for part in command)
        if is_jupyter and not any(root in part for part in command for root in ROOTS):
            environments.filter(pk=environment.pk).update(command=[*command, "--ServerApp.root_dir={project}"])


class Migration(migrations.Migration):
    dependencies = [("grid", "0007_unlocked_action")]

    operations = [migrations.RunPython(name_the_folder, migrations.RunPython.noop)]
