from django.db import migrations, models
from django_pg_migration_tools.operations import SaferAddIndexConcurrently, SaferRemoveIndexConcurrently

ORDER = tuple(models.F(name).desc() for name in ("delay_currency", "delay_value", "id"))


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("approvals", "0033_one_zone")]
    accepted = {"prefer-robust-stmts": "Each of the safer operations looks first whether its index is there."}

    operations = [
        SaferAddIndexConcurrently(
            "gate",
            models.Index(
                models.F("team"), *ORDER, condition=models.Q(status="open"), include=("opened_at",),
                name="gate_of_team_delay_since",
            ),
        ),
        SaferRemoveIndexConcurrently("gate", "gate_of_team_delay"),
    ]
