import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0037_pushed_while_signed_in")]

    operations = [
        migrations.AddField(
            "gate", "authors", django.contrib.postgres.fields.ArrayField(models.BigIntegerField(), null=True)
        ),
    ]
