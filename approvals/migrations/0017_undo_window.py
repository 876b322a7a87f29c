from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0016_chat_channels")]

    operations = [migrations.AddField("policy", "undo_window", models.DurationField(blank=True, null=True))]
