import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# Every change of a run's status writes an entry into each of its indexes. These four serve no query: others begin with
# the same column, and no key is found by its beginning.
UNUSED = {
    "checkpoints_run_plan_id_98fbcaa5": "plan_id",
    "checkpoints_run_team_id_41570ae0": "team_id",
    "checkpoints_run_started_by_id_64a02197": "started_by_id",
    "checkpoints_run_key_263b9dca_like": "key varchar_pattern_ops",
}


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("checkpoints", "0002_new_codec"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunSQL(
                    f"DROP INDEX CONCURRENTLY IF EXISTS {name}",
                    f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON checkpoints_run ({column})",
                )
                for name, column in UNUSED.items()
            ],
            [
                migrations.AlterField("run", "plan", models.ForeignKey("checkpoints.plan", db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="runs")),
                migrations.AlterField("run", "team", models.ForeignKey("auth.group", db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="runs")),
                migrations.AlterField("run", "started_by", models.ForeignKey(settings.AUTH_USER_MODEL, blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+")),
            ],
        )
    ]
