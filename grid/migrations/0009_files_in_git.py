import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """A project's files may be in Git, where a job begins in them, and what became of the files of each execution."""

    dependencies = [("grid", "0008_budgets")]

    operations = [
        migrations.AddField(
            model_name="project",
            name="files",
            field=models.CharField(
                choices=[("volume", "A shared volume"), ("git", "Git")], default="volume", max_length=10
            ),
        ),
        migrations.AddField(
            model_name="job",
            name="files_at",
            field=models.CharField(
                blank=True,
                help_text="Branch or commit of files in Git to begin with; empty: main.",
                max_length=200,
            ),
        ),
        migrations.CreateModel(
            name="RunFiles",
            fields=[
                (
                    "execution",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="files",
                        serialize=False,
                        to="grid.execution",
                    ),
                ),
                ("began", models.CharField(blank=True, help_text='"" for an empty repository.', max_length=40)),
                ("ended", models.CharField(blank=True, max_length=40)),
                ("branch", models.CharField(blank=True, max_length=200)),
                ("kept", models.CharField(blank=True, max_length=20)),
                ("problem", models.TextField(blank=True)),
                ("left_out", models.PositiveIntegerField(default=0, help_text="Files that could not be read.")),
            ],
        ),
    ]
