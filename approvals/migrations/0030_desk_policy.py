import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0029_desk")]

    operations = [
        migrations.AddField("policy", "calendar", models.ForeignKey("approvals.calendar", blank=True, db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+")),
        migrations.AddField("policy", "escalation", models.JSONField(blank=True, db_default=models.Value([], models.JSONField()), default=list)),
    ]
