from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("later", "0001_column"), ("agents", "0001_initial")]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE agents_effect SET (autovacuum_vacuum_threshold = 60)",
            "ALTER TABLE agents_effect RESET (autovacuum_vacuum_threshold)",
        )
    ]
