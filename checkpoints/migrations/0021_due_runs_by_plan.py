from django.db import migrations, models
from django.db.models import Q
from django_pg_migration_tools.operations import SaferAddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("checkpoints", "0020_events_of_their_transaction")]

    operations = [
        SaferAddIndexConcurrently(
            "run",
            models.Index(
                fields=["plan", "status", "id"],
                name="run_to_sweep_of_plan",
                condition=Q(status__in=["queued", "running"]),
            ),
        ),
    ]
