from django.db import migrations, models
from django.db.models import F, Q
from django_pg_migration_tools.operations import SaferAddIndexConcurrently, SaferRemoveIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("agents", "0005_step_checkpoint_codec")]

    operations = [
        SaferRemoveIndexConcurrently("childlink", "child_held"),
        SaferAddIndexConcurrently(
            "childlink", models.Index(F("parent"), F("id"), condition=Q(held=True), name="child_held")
        ),
    ]
