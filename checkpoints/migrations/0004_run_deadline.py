from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("checkpoints", "0003_run_indexes")]

    operations = [
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunSQL(
                    "ALTER TABLE checkpoints_run ADD COLUMN IF NOT EXISTS deadline timestamp with time zone",
                    "ALTER TABLE checkpoints_run DROP COLUMN IF EXISTS deadline",
                ),
                migrations.RunSQL(
                    "CREATE INDEX CONCURRENTLY IF NOT EXISTS run_deadline ON checkpoints_run (deadline) "
                    "WHERE status IN ('queued', 'running', 'waiting') AND deadline IS NOT NULL",
                    "DROP INDEX CONCURRENTLY IF EXISTS run_deadline",
                ),
            ],
            [
                migrations.AddField("run", "deadline", models.DateTimeField(null=True)),
                migrations.AddIndex(
                    "run",
                    models.Index("deadline", name="run_deadline", condition=models.Q(status__in=["queued", "running", "waiting"], deadline__isnull=False)),
                ),
            ],
        )
    ]
