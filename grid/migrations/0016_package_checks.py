from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("grid", "0015_warm_up_hours")]

    operations = [
        migrations.AddField(
            model_name="environmentrevision",
            name="packages_report",
            field=models.JSONField(blank=True, help_text="What the package index said of them last.", null=True),
        ),
        migrations.AddField(
            model_name="environmentrevision",
            name="packages_asked_at",
            field=models.DateTimeField(blank=True, help_text="When the index was asked last.", null=True),
        ),
        migrations.AddField(
            model_name="environmentrevision",
            name="packages_unchecked",
            field=models.TextField(
                blank=True, default="", help_text='Why it said nothing then, as a sentence; "" if it did.'
            ),
            preserve_default=False,
        ),
    ]
