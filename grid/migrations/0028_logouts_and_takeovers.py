import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("grid", "0026_node_marks"),
    ]

    operations = [
        migrations.CreateModel(
            name="QueueTakeover",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("actor_name", models.CharField(help_text="Kept when the account goes.", max_length=150)),
                ("reason", models.CharField(max_length=200)),
                ("from_at", models.DateTimeField()),
                ("until_at", models.DateTimeField(db_index=True)),
                (
                    "actor",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.AlterField(
            model_name="auditentry",
            name="action",
            field=models.CharField(
                choices=[
                    ("created", "Created"),
                    ("changed", "Changed"),
                    ("archived", "Archived"),
                    ("restored", "Restored"),
                    ("reset", "Reset to default"),
                    ("unlocked", "Unlocked"),
                    ("ended", "Ended"),
                    ("sent", "Sent"),
                    ("launched", "Launched"),
                    ("stopped", "Stopped"),
                    ("restarted", "Restarted"),
                    ("deleted", "Deleted"),
                    ("opened", "Opened"),
                    ("downloaded", "Downloaded"),
                    ("logged in", "Logged in"),
                    ("logged out", "Logged out"),
                    ("login failed", "Login failed"),
                ],
                max_length=20,
            ),
        ),
    ]
