from django.db import migrations, models

ASKED_ONCE = """
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS asked_once_a_turn
ON approvals_notice (gate_id, turn, kind, channel, user_id, address_id) NULLS NOT DISTINCT WHERE turn IS NOT NULL
"""


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("approvals", "0049_message_attempts")]

    operations = [
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunSQL(
                    "ALTER TABLE approvals_gate ADD COLUMN IF NOT EXISTS turn integer DEFAULT 0 NOT NULL",
                    "ALTER TABLE approvals_gate DROP COLUMN IF EXISTS turn",
                ),
                migrations.RunSQL(
                    "ALTER TABLE approvals_notice ADD COLUMN IF NOT EXISTS turn integer",
                    "ALTER TABLE approvals_notice DROP COLUMN IF EXISTS turn",
                ),
                migrations.RunSQL(ASKED_ONCE, "DROP INDEX CONCURRENTLY IF EXISTS asked_once_a_turn"),
            ],
            [
                migrations.AddField("Gate", "turn", models.IntegerField(db_default=0, default=0)),
                migrations.AddField("Message", "turn", models.IntegerField(null=True)),
                migrations.AddConstraint(
                    "message",
                    models.UniqueConstraint(
                        condition=models.Q(turn__isnull=False),
                        fields=["gate", "turn", "kind", "channel", "user", "address"],
                        name="asked_once_a_turn",
                        nulls_distinct=False,
                    ),
                ),
            ],
        ),
    ]
