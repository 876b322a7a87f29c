from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0009_insights")]

    operations = [
        migrations.AddField(
            model_name="gate",
            name="request_digest",
            field=models.CharField(db_default="", default="", editable=False, max_length=64),
        ),
        migrations.AddField(
            model_name="gate",
            name="resource",
            field=models.CharField(db_default="", default="", editable=False, max_length=200),
        ),
    ]
