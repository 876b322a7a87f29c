from django.db import migrations, models
from django_pg_migration_tools.operations import SaferAddIndexConcurrently

RISK = models.Case(
    models.When(risk="critical", then=0), models.When(risk="high", then=1), models.When(risk="medium", then=2), default=3
)
ORDERS = {
    "oldest": (models.F("opened_at"), models.F("id")),
    "amount": tuple(models.F(name).desc() for name in ("amount_currency", "amount_value", "id")),
    "delay": tuple(models.F(name).desc() for name in ("delay_currency", "delay_value", "id")),
    "risk": (RISK, models.F("opened_at"), models.F("id")),
}
COLUMNS = {
    "amount_currency": ("varchar(3) DEFAULT '' NOT NULL", models.CharField(db_default="", default="", editable=False, max_length=3)),
    "amount_value": ("numeric(24, 6) DEFAULT 0 NOT NULL", models.DecimalField(db_default=0, decimal_places=6, default=0, editable=False, max_digits=24)),
    "delay_currency": ("varchar(3) DEFAULT '' NOT NULL", models.CharField(db_default="", default="", editable=False, max_length=3)),
    "delay_value": ("numeric(24, 6) DEFAULT 0 NOT NULL", models.DecimalField(db_default=0, decimal_places=6, default=0, editable=False, max_digits=24)),
}


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("approvals", "0027_snoozes")]
    accepted = {"prefer-robust-stmts": "Each of the safer operations looks first whether its index is there."}

    operations = [
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunSQL(
                    f"ALTER TABLE approvals_gate ADD COLUMN IF NOT EXISTS {name} {kind}",
                    f"ALTER TABLE approvals_gate DROP COLUMN IF EXISTS {name}",
                )
                for name, (kind, _) in COLUMNS.items()
            ],
            [migrations.AddField("gate", name, field) for name, (_, field) in COLUMNS.items()],
        ),
        *(
            SaferAddIndexConcurrently(
                "gate",
                models.Index(models.F(owner), *order, condition=models.Q(status="open"), name=f"gate_of_{owner}_{name}"),
            )
            for owner in ("team", "policy")
            for name, order in ORDERS.items()
        ),
    ]
