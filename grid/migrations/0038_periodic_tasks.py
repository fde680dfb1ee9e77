from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('grid', '0037_email_changes'),
    ]

    operations = [
        migrations.AddField(
            model_name='platformreport',
            name='tasks',
            field=models.JSONField(default=list, help_text='Periodic tasks, in the form of `grid.database.periodic.TaskRecord`.'),
        ),
    ]
