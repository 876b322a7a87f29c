import django.db.models.deletion
from django.db import migrations, models
from django_pg_migration_tools.operations import SaferAddFieldForeignKey, SaferAddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("checkpoints", "0004_run_deadline")]
    accepted = {"prefer-robust-stmts": "Each of the safer operations looks first whether its constraint or index is there."}

    operations = [
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunSQL(
                    "ALTER TABLE checkpoints_run ADD COLUMN IF NOT EXISTS awaited integer DEFAULT 0 NOT NULL",
                    "ALTER TABLE checkpoints_run DROP COLUMN IF EXISTS awaited",
                )
            ],
            [migrations.AddField("run", "awaited", models.IntegerField(db_default=0, default=0))],
        ),
        SaferAddFieldForeignKey(
            model_name="run",
            name="parent",
            field=models.ForeignKey(
                "checkpoints.run", blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT,
                related_name="children",
            ),
        ),
        SaferAddIndexConcurrently(
            "run",
            models.Index(
                condition=models.Q(parent__isnull=False, status__in=["queued", "running", "waiting"]),
                fields=["parent", "status", "id"],
                name="run_of_parent",
            ),
        ),
    ]
