import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    """A project's files may be in a remote repository."""

    dependencies = [
        ("grid", "0011_open_predictions"),
    ]

    operations = [
        migrations.CreateModel(
            name="RemoteRepository",
            fields=[
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="remote",
                        serialize=False,
                        to="grid.project",
                    ),
                ),
                ("url", models.CharField(max_length=500)),
                (
                    "branch",
                    models.CharField(
                        default="main", help_text="Where executions begin, and what they push to.", max_length=200
                    ),
                ),
                (
                    "username",
                    models.CharField(
                        blank=True, help_text="What the server is told beside the token; not for SSH.", max_length=100
                    ),
                ),
                ("ciphertext", models.TextField()),
                (
                    "host_key",
                    models.TextField(
                        blank=True, help_text='The SSH server\'s key that a person has confirmed; "" until then.'
                    ),
                ),
                ("changed_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("changed_by", models.CharField(max_length=150)),
            ],
        ),
        migrations.AlterField(
            model_name="project",
            name="files",
            field=models.CharField(
                choices=[
                    ("volume", "A shared volume"),
                    ("git", "Git, in a repository of this installation"),
                    ("remote", "Git, in a remote repository"),
                ],
                default="volume",
                max_length=10,
            ),
        ),
    ]
