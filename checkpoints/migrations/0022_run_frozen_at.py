from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("checkpoints", "0021_due_runs_by_plan")]

    operations = [migrations.AddField("run", "frozen_at", models.DateTimeField(null=True))]
