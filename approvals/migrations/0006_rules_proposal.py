from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0005_rules_gate")]

    operations = [
        migrations.AddField(
            model_name="proposal",
            name="requirements",
            field=models.TextField(db_default="", default=""),
        ),
    ]
