from django.db import migrations, models
from django_pg_migration_tools.operations import SaferAddIndexConcurrently, SaferRemoveIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("checkpoints", "0007_kinds_of_open_gates")]
    accepted = {"prefer-robust-stmts": "Each of the safer operations looks first whether its index is there."}

    operations = [
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunSQL(
                    "ALTER TABLE checkpoints_run ADD COLUMN IF NOT EXISTS priority smallint DEFAULT 5 NOT NULL",
                    "ALTER TABLE checkpoints_run DROP COLUMN IF EXISTS priority",
                )
            ],
            [migrations.AddField("run", "priority", models.SmallIntegerField(db_default=5, default=5))],
        ),
        SaferAddIndexConcurrently(
            "run",
            models.Index(
                condition=models.Q(status__in=["queued", "running"]),
                fields=["plan", "status", "priority", "id"],
                name="run_to_sweep_by_priority",
            ),
        ),
        SaferRemoveIndexConcurrently("run", "run_to_sweep_of_plan"),
    ]
