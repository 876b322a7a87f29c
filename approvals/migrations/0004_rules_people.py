from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    accepted = {"several-tables": "The new table names two: each is locked for an instant, and a wait ends at LOCK_TIMEOUT."}

    dependencies = [
        ("approvals", "0003_rules_policy"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="policy",
            name="people",
            field=models.ManyToManyField(blank=True, related_name="+", to=settings.AUTH_USER_MODEL),
        ),
    ]
