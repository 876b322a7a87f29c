from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0017_undo_window")]

    operations = [
        migrations.AddField("gate", "settles_at", models.DateTimeField(null=True)),
        migrations.AddField("gate", "settles_as", models.CharField(db_default="", default="", max_length=10)),
    ]
