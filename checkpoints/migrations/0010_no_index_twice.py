import django.db.models.deletion
from django.db import migrations, models

# Each insert writes an entry into each index. Another index of the table begins with the same column, or finds the text.
TWICE = {
    "checkpoints_pruneline_prune_id_7f7f00db": ("checkpoints_pruneline", "prune_id"),
}


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ('checkpoints', '0009_pruned_waits'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunSQL(
                    f"DROP INDEX CONCURRENTLY IF EXISTS {name}",
                    f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {table} ({column})",
                )
                for name, (table, column) in TWICE.items()
            ],
            [
                migrations.AlterField(
                    model_name='pruneline',
                    name='prune',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='lines', to='checkpoints.prune'),
                ),
            ],
        )
    ]
