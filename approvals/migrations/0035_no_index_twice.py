import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# Each insert writes an entry into each index. Another index of the table begins with the same column, or finds the text.
TWICE = {
    "approvals_addedteam_gate_id_b1c04766": ("approvals_addedteam", "gate_id"),
    "approvals_agentquestion_gate_id_23f63cc4": ("approvals_agentquestion", "gate_id"),
    "approvals_attempt_delivery_id_d7aad04f": ("approvals_attempt", "delivery_id"),
    "approvals_bulkitem_order_id_55421372": ("approvals_bulkitem", "order_id"),
    "approvals_bulkorder_user_id_537dd028": ("approvals_bulkorder", "user_id"),
    "approvals_calendar_name_e537b1a5": ("approvals_calendar", "name"),
    "approvals_calendar_name_e537b1a5_like": ("approvals_calendar", "name varchar_pattern_ops"),
    "approvals_calendar_team_id_398f5d37": ("approvals_calendar", "team_id"),
    "approvals_decision_gate_id_7bf51b9e": ("approvals_decision", "gate_id"),
    "approvals_decision_user_id_c08c15af": ("approvals_decision", "user_id"),
    "approvals_delegation_person_id_d788fa29": ("approvals_delegation", "person_id"),
    "approvals_delivery_message_93fc0dfe_like": ("approvals_delivery", "message varchar_pattern_ops"),
    "approvals_delivery_webhook_id_00b62c70": ("approvals_delivery", "webhook_id"),
    "approvals_draft_gate_id_269f35f9": ("approvals_draft", "gate_id"),
    "approvals_escalation_gate_id_58ca8f37": ("approvals_escalation", "gate_id"),
    "approvals_gate_run_id_ba56b3c2": ("approvals_gate", "run_id"),
    "approvals_gate_team_id_c39e69bf": ("approvals_gate", "team_id"),
    "approvals_gatevisit_gate_id_f97a4223": ("approvals_gatevisit", "gate_id"),
    "approvals_grant_outcome_id_dfeea134": ("approvals_grant", "outcome_id"),
    "approvals_policy_name_6a351dd6": ("approvals_policy", "name"),
    "approvals_policy_name_6a351dd6_like": ("approvals_policy", "name varchar_pattern_ops"),
    "approvals_policy_team_id_5c6f9804": ("approvals_policy", "team_id"),
    "approvals_policychange_name_9a1bd695": ("approvals_policychange", "name"),
    "approvals_policychange_name_9a1bd695_like": ("approvals_policychange", "name varchar_pattern_ops"),
    "approvals_proposal_gate_id_ef650521": ("approvals_proposal", "gate_id"),
    "approvals_savedview_user_id_9dd5b00e": ("approvals_savedview", "user_id"),
    "approvals_snooze_user_id_ec9da4e6": ("approvals_snooze", "user_id"),
    "approvals_tool_team_id_8d92b33b": ("approvals_tool", "team_id"),
    "approvals_upload_gate_id_1ca8729a": ("approvals_upload", "gate_id"),
}


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ('approvals', '0034_cost_index'),
        ('auth', '0012_alter_user_first_name_max_length'),
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
                    model_name='addedteam',
                    name='gate',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='added', to='approvals.gate'),
                ),
                migrations.AlterField(
                    model_name='agentquestion',
                    name='gate',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='questions', to='approvals.gate'),
                ),
                migrations.AlterField(
                    model_name='attempt',
                    name='delivery',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='log', to='approvals.delivery'),
                ),
                migrations.AlterField(
                    model_name='bulkitem',
                    name='order',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='items', to='approvals.bulkorder'),
                ),
                migrations.AlterField(
                    model_name='bulkorder',
                    name='user',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL),
                ),
                migrations.AlterField(
                    model_name='calendar',
                    name='name',
                    field=models.SlugField(db_index=False, max_length=60),
                ),
                migrations.AlterField(
                    model_name='calendar',
                    name='team',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='auth.group'),
                ),
                migrations.AlterField(
                    model_name='decision',
                    name='gate',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='decisions', to='approvals.gate'),
                ),
                migrations.AlterField(
                    model_name='decision',
                    name='user',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
                ),
                migrations.AlterField(
                    model_name='delegation',
                    name='person',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='delegations', to=settings.AUTH_USER_MODEL),
                ),
                migrations.AlterField(
                    model_name='delivery',
                    name='webhook',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='approvals.webhook'),
                ),
                migrations.AlterField(
                    model_name='draft',
                    name='gate',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='drafts', to='approvals.gate'),
                ),
                migrations.AlterField(
                    model_name='escalation',
                    name='gate',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='escalations', to='approvals.gate'),
                ),
                migrations.AlterField(
                    model_name='gate',
                    name='run',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='gates', to='checkpoints.run'),
                ),
                migrations.AlterField(
                    model_name='gate',
                    name='team',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='gates', to='auth.group'),
                ),
                migrations.AlterField(
                    model_name='gatevisit',
                    name='gate',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='visits', to='approvals.gate'),
                ),
                migrations.AlterField(
                    model_name='grant',
                    name='outcome',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='grants', to='approvals.outcome'),
                ),
                migrations.AlterField(
                    model_name='policy',
                    name='name',
                    field=models.SlugField(db_index=False, max_length=60),
                ),
                migrations.AlterField(
                    model_name='policy',
                    name='team',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='policies', to='auth.group'),
                ),
                migrations.AlterField(
                    model_name='policychange',
                    name='name',
                    field=models.SlugField(db_index=False, max_length=60),
                ),
                migrations.AlterField(
                    model_name='proposal',
                    name='gate',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='proposals', to='approvals.gate'),
                ),
                migrations.AlterField(
                    model_name='savedview',
                    name='user',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL),
                ),
                migrations.AlterField(
                    model_name='snooze',
                    name='user',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL),
                ),
                migrations.AlterField(
                    model_name='tool',
                    name='team',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='tools', to='auth.group'),
                ),
                migrations.AlterField(
                    model_name='upload',
                    name='gate',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='uploads', to='approvals.gate'),
                ),
            ],
        )
    ]
