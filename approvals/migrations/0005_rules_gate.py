import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0004_rules_people")]

    operations = [
        migrations.AddField(
            model_name="gate",
            name="awaits",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.BigIntegerField(), db_default=[], default=list, size=None
            ),
        ),
    ]
