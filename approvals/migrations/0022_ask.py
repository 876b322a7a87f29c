import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    accepted = {"several-tables": "The new table is empty, so each of its two foreign keys takes its lock for an instant."}
    dependencies = [
        ("approvals", "0021_undo_index"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AgentQuestion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=80)),
                (
                    "status",
                    models.CharField(
                        choices=[("asked", "Asked"), ("answered", "Answered"), ("failed", "Failed")],
                        db_default="asked",
                        default="asked",
                        max_length=8,
                    ),
                ),
                ("attempts", models.IntegerField(db_default=0, default=0)),
                ("busy_until", models.DateTimeField(null=True)),
                ("token", models.IntegerField(db_default=0, default=0)),
                ("asked_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "gate",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="questions", to="approvals.gate"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(condition=models.Q(("status", "asked")), fields=["id"], name="question_waiting")
                ],
                "constraints": [models.UniqueConstraint(fields=("gate", "user", "key"), name="one_question_per_form")],
            },
        ),
    ]
