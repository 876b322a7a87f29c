from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("checkpoints", "0008_run_priority")]

    operations = [
        migrations.AddField("pruneline", "signals_and_waits", models.IntegerField(db_default=0, default=0)),
        migrations.AddField("pruneline", "signals_and_waits_removed", models.IntegerField(db_default=0, default=0)),
    ]
