import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0040_owed_samples")]

    operations = [
        migrations.AddField(
            "gate", "authors", django.contrib.postgres.fields.ArrayField(models.BigIntegerField(), null=True)
        ),
    ]
