from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0041_gate_authors")]

    operations = [
        migrations.AddField("tool", "counts", models.BooleanField(default=True, db_default=True, editable=False)),
    ]
