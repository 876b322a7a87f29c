import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0019_undo_decision")]

    operations = [
        migrations.CreateModel(
            name="Unrun",
            fields=[
                (
                    "gate",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="unrun",
                        serialize=False,
                        to="approvals.gate",
                    ),
                ),
                ("due_at", models.DateTimeField(db_index=True)),
                ("raised_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        models.F("raised_at"),
                        condition=models.Q(("raised_at__isnull", False)),
                        name="unrun_raised",
                    ),
                ],
            },
        ),
    ]
