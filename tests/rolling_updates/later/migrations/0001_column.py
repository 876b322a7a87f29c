from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("checkpoints", "0001_initial")]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE checkpoints_run ADD COLUMN IF NOT EXISTS later integer",
            "ALTER TABLE checkpoints_run DROP COLUMN later",
        )
    ]
