from django.db import migrations, models
from django_pg_migration_tools.operations import SaferAddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("checkpoints", "0005_children")]

    operations = [
        SaferAddIndexConcurrently(
            "run",
            models.Index("id", name="run_awaiting", condition=models.Q(status="waiting", awaited__gt=0)),
        ),
    ]
