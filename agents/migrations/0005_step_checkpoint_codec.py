from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0004_children")]

    operations = [
        migrations.AddField("stepcheckpoint", "codec", models.SmallIntegerField(default=0, db_default=0)),
        # PostgreSQL would try to compress again what is compressed.
        migrations.RunSQL("ALTER TABLE agents_stepcheckpoint ALTER value SET STORAGE EXTERNAL", migrations.RunSQL.noop),
    ]
