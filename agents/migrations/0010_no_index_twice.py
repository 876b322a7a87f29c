import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# Each insert writes an entry into each index. Another index of the table begins with the same column, or finds the text.
TWICE = {
    "agents_effect_key_2f6c772a_like": ("agents_effect", "key varchar_pattern_ops"),
    "agents_effect_run_id_7810fb25": ("agents_effect", "run_id"),
    "agents_failure_run_id_b8e77325": ("agents_failure", "run_id"),
    "agents_memo_run_id_7b428af7": ("agents_memo", "run_id"),
    "agents_registration_plan_id_1b616c85": ("agents_registration", "plan_id"),
    "agents_token_user_id_564e0ee0": ("agents_token", "user_id"),
}


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ('agents', '0009_answer_binds'),
        ('checkpoints', '0010_no_index_twice'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
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
                    model_name='effect',
                    name='run',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='effects', to='checkpoints.run'),
                ),
                migrations.AlterField(
                    model_name='failure',
                    name='run',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='failures', to='checkpoints.run'),
                ),
                migrations.AlterField(
                    model_name='memo',
                    name='run',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='memos', to='checkpoints.run'),
                ),
                migrations.AlterField(
                    model_name='registration',
                    name='plan',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='checkpoints.plan'),
                ),
                migrations.AlterField(
                    model_name='token',
                    name='user',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='tokens', to=settings.AUTH_USER_MODEL),
                ),
            ],
        )
    ]
