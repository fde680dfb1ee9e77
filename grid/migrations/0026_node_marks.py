from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("grid", "0025_support_bundles"),
    ]

    operations = [
        migrations.AddField(
            model_name="nodetask",
            name="looked_at",
            field=models.CharField(
                blank=True, default="", help_text="Which labels and taints were looked at.", max_length=16
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="nodetask",
            name="mark",
            field=models.JSONField(default=dict, help_text="Of a taint or label: its key, value and effect."),
        ),
        migrations.AlterField(
            model_name="nodetask",
            name="action",
            field=models.CharField(
                choices=[
                    ("cordon", "Cordon"),
                    ("uncordon", "Uncordon"),
                    ("drain", "Drain"),
                    ("taint", "Add taint"),
                    ("untaint", "Remove taint"),
                    ("label", "Set label"),
                    ("unlabel", "Remove label"),
                ],
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="nodetask",
            name="outcome",
            field=models.CharField(
                blank=True,
                choices=[
                    ("done", "Done"),
                    ("cancelled", "Cancelled"),
                    ("gone", "Node gone"),
                    ("changed", "Node was changed"),
                    ("refused", "Refused"),
                ],
                max_length=10,
            ),
        ),
    ]
