from django.db import migrations, models
from django_pg_migration_tools.operations import SaferAddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("approvals", "0020_undo_unrun")]

    operations = [
        SaferAddIndexConcurrently(
            model_name="gate",
            index=models.Index(
                models.F("settles_at"),
                condition=models.Q(("settles_at__isnull", False), ("status", "open")),
                name="gate_settles",
            ),
        ),
    ]
