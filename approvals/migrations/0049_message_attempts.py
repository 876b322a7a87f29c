import django.db.models.deletion
from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies = [("approvals", "0048_messages")]

    operations = [
        migrations.CreateModel(
            name="MessageAttempt",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "message",
                    models.ForeignKey(
                        "approvals.message", db_index=False, on_delete=django.db.models.deletion.CASCADE,
                        related_name="log",
                    ),
                ),
                ("number", models.IntegerField()),
                ("at", models.DateTimeField(db_default=Now())),
                ("result", models.CharField(db_default="", default="", max_length=30)),
                ("status", models.IntegerField(null=True)),
                ("duration", models.DurationField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=["message", "number"], name="a_message_s_attempts_are_counted"
                    )
                ],
            },
        ),
    ]
