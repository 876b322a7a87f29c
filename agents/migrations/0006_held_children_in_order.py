from django.db import migrations, models
from django.db.models import F, Q


class Migration(migrations.Migration):
    dependencies = [("agents", "0005_step_checkpoint_codec")]

    operations = [
        migrations.RemoveIndex("childlink", "child_held"),
        migrations.AddIndex("childlink", models.Index(F("parent"), F("id"), condition=Q(held=True), name="child_held")),
    ]
