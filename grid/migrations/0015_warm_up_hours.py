from django.core.validators import MaxValueValidator
from django.db import migrations, models

import grid.models.fields


class Migration(migrations.Migration):
    dependencies = [("grid", "0014_environment_revisions")]

    operations = [
        migrations.AddField(
            model_name="hardwaretier",
            name="warm_places",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="Placeholder pods that keep room ready for it in its warm-up hours; empty means none.",
                null=True,
                validators=[MaxValueValidator(1000)],
            ),
        ),
        migrations.AddField(
            model_name="hardwaretier",
            name="warm_days",
            field=models.JSONField(
                blank=True, default=list, help_text="Days of the week on which those hours begin."
            ),
        ),
        migrations.AddField(
            model_name="hardwaretier",
            name="warm_from",
            field=models.CharField(
                blank=True, help_text="Such as 08:00.", max_length=5, validators=[grid.models.fields.validate_time]
            ),
        ),
        migrations.AddField(
            model_name="hardwaretier",
            name="warm_until",
            field=models.CharField(
                blank=True, help_text="Such as 18:00.", max_length=5, validators=[grid.models.fields.validate_time]
            ),
        ),
        migrations.AddField(
            model_name="hardwaretier",
            name="warm_zone",
            field=models.CharField(
                blank=True,
                help_text="IANA name; empty means UTC.",
                max_length=60,
                validators=[grid.models.fields.validate_time_zone],
            ),
        ),
    ]
