from django.db import migrations, models
from django_pg_migration_tools.operations import SaferAddIndexConcurrently


def _index(model, name, *fields):
    unnamed = ~models.Q(**{fields[-2]: ""})
    return SaferAddIndexConcurrently(model, models.Index(fields=fields, name=name, condition=unnamed))


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("approvals", "0038_likeness_of_grants")]
    accepted = {"prefer-robust-stmts": "Each of the safer operations looks first whether its index is there."}

    operations = [
        *(_index("grant", f"grant_of_{how}", f"same_{how}", "-id") for how in ("arguments", "key", "resource")),
        SaferAddIndexConcurrently(
            "gate",
            models.Index(
                fields=["team", "resource", "-id"],
                name="gate_of_resource_closed",
                condition=~models.Q(status="open") & ~models.Q(resource=""),
            ),
        ),
    ]
