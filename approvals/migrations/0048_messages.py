import django.db.models.deletion
from django.db import migrations, models
from django_pg_migration_tools.operations import (
    SaferAddFieldForeignKey,
    SaferAddIndexConcurrently,
    SaferAddUniqueConstraint,
)

# Whoever may see the log of notices may see that of messages.
NAMED = """
UPDATE django_content_type SET model = '{new}' WHERE app_label = 'approvals' AND model = '{old}';
UPDATE auth_permission permission
SET codename = replace(codename, '_{old}', '_{new}'), name = replace(permission.name, ' {old}', ' {new}')
FROM django_content_type kind
WHERE kind.id = permission.content_type_id AND kind.app_label = 'approvals' AND kind.model = '{new}';
"""


class Migration(migrations.Migration):
    """One outbox: messages to webhooks wait in the table of notices, which gets what they need.

    The running release goes on with the two tables that its models know. `config.migrate --finish` moves what it left.
    """

    atomic = False
    dependencies = [("approvals", "0047_gate_access")]
    accepted = {
        "prefer-robust-stmts": "Each of the safer operations looks first whether its constraint or index is there.",
        "changing-column-type": "Wider: no row is read or written.",
        "data-in-one-go": "A handful of rows.",
    }

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RenameModel("Notice", "Message"),
                migrations.AlterModelTable("Message", "approvals_notice"),
                migrations.DeleteModel("Attempt"),
                migrations.DeleteModel("Delivery"),
            ]
        ),
        migrations.RunSQL(NAMED.format(old="notice", new="message"), NAMED.format(old="message", new="notice")),
        migrations.AlterField("Message", "kind", models.CharField(max_length=30)),
        migrations.AlterField("Message", "channel", models.CharField(max_length=30)),
        migrations.AlterField("ChannelState", "channel", models.CharField(max_length=30, primary_key=True, serialize=False)),
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunSQL(
                    "ALTER TABLE approvals_notice ADD COLUMN IF NOT EXISTS name varchar(40), "
                    "ADD COLUMN IF NOT EXISTS body bytea, ADD COLUMN IF NOT EXISTS tries integer DEFAULT 0 NOT NULL, "
                    "ADD COLUMN IF NOT EXISTS taken integer DEFAULT 0 NOT NULL",
                    "ALTER TABLE approvals_notice DROP COLUMN IF EXISTS name, DROP COLUMN IF EXISTS body, "
                    "DROP COLUMN IF EXISTS tries, DROP COLUMN IF EXISTS taken",
                )
            ],
            [
                migrations.AddField("Message", "name", models.CharField(max_length=40, null=True)),
                migrations.AddField("Message", "body", models.BinaryField(null=True)),
                migrations.AddField("Message", "tries", models.IntegerField(db_default=0, default=0)),
                migrations.AddField("Message", "taken", models.IntegerField(db_default=0, default=0)),
            ],
        ),
        SaferAddFieldForeignKey(
            model_name="message",
            name="webhook",
            field=models.ForeignKey(
                "approvals.webhook", db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT,
                related_name="messages",
            ),
        ),
        SaferAddIndexConcurrently(
            "message",
            models.Index(
                "webhook", models.F("id").desc(), condition=models.Q(webhook__isnull=False), name="message_of_webhook"
            ),
        ),
        SaferAddUniqueConstraint(
            "message",
            models.UniqueConstraint(fields=["webhook", "gate", "kind"], name="one_message_per_webhook_and_event"),
        ),
        SaferAddUniqueConstraint(
            "message", models.UniqueConstraint(fields=["name"], name="one_message_of_a_name")
        ),
    ]
