from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("checkpoints", "0001_initial")]

    operations = [
        # Every checkpoint updates its run's row: room on the page keeps that a heap-only update.
        migrations.RunSQL(
            "ALTER TABLE checkpoints_run SET (fillfactor = 50)", "ALTER TABLE checkpoints_run RESET (fillfactor)"
        ),
        # Payloads are compressed already; PostgreSQL's own attempt would cost time and save nothing.
        migrations.RunSQL(
            "ALTER TABLE checkpoints_checkpoint ALTER payload SET STORAGE EXTERNAL",
            "ALTER TABLE checkpoints_checkpoint ALTER payload SET STORAGE EXTENDED",
        ),
        migrations.RunSQL(
            "ALTER TABLE checkpoints_chunk ALTER payload SET STORAGE EXTERNAL",
            "ALTER TABLE checkpoints_chunk ALTER payload SET STORAGE EXTENDED",
        ),
    ]
