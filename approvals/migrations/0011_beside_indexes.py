from django.db import migrations, models
from django_pg_migration_tools.operations import SaferAddIndexConcurrently

OPEN = models.Q(status="open")


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("approvals", "0010_beside")]

    operations = [
        SaferAddIndexConcurrently(
            model_name="gate",
            index=models.Index(
                "team", "request_digest", "opened_at", "id", name="gate_of_request",
                condition=OPEN & ~models.Q(request_digest=""),
            ),
        ),
        SaferAddIndexConcurrently(
            model_name="gate",
            index=models.Index(
                "team", "resource", "opened_at", "id", name="gate_of_resource",
                condition=OPEN & ~models.Q(resource=""),
            ),
        ),
    ]  # fmt: skip
