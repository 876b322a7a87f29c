from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0018_undo_gate")]

    operations = [migrations.AddField("decision", "shown", models.TextField(db_default="", default=""))]
