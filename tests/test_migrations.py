"""What migrations do to rows that are there already."""

import importlib

import pytest
from django.apps import apps
from django.db import connection

from grid.models import Environment

JUPYTER = ["jupyter", "lab", "--ServerApp.base_url={base_url}"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("workspace", JUPYTER, [*JUPYTER, "--ServerApp.root_dir={project}"]),
        ("workspace", [*JUPYTER, "--notebook-dir=/data"], [*JUPYTER, "--notebook-dir=/data"]),
        ("workspace", ["code-server", "--port={port}"], ["code-server", "--port={port}"]),
        ("app", JUPYTER, JUPYTER),
    ],
)
def test_jupyterlab_environments_made_before_homes_show_the_projects_files(
    kind: str, before: list[str], after: list[str]
) -> None:
    Environment.objects.create(id="lab", name="Lab", image="lab:1", kind=kind, port=8888, command=before)
    migration = importlib.import_module("grid.migrations.0008_jupyter_shows_project_files")
    migration.name_the_folder(apps, connection.schema_editor())
    assert Environment.objects.get(pk="lab").command == after
