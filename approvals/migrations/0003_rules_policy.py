import django.core.validators
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0002_tokens_decide"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="policy",
            name="denials",
            field=models.PositiveSmallIntegerField(
                db_default=1, default=1, validators=[django.core.validators.MinValueValidator(1)]
            ),
        ),
        migrations.AddField(
            model_name="policy",
            name="rules",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
        migrations.AddField(
            model_name="policy",
            name="stages",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
        migrations.AlterField(
            model_name="policy",
            name="on_expiry",
            field=models.CharField(
                choices=[
                    ("expire", "Expire: nothing runs, the agent is told that nobody answered in time"),
                    ("stop", "Stop: the run ends, even if the agent has another way to go on"),
                    ("rollback", "Roll back: the run ends, and what it did is undone where that is possible"),
                    ("escalate", "Escalate: the next group is asked"),
                    ("approve", "Approve when nobody answered in time"),
                ],
                default="expire",
                max_length=8,
            ),
        ),
    ]
