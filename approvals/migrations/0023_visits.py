import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    accepted = {"several-tables": "The new table is empty, so each of its two foreign keys takes its lock for an instant."}
    dependencies = [
        ("approvals", "0022_ask"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="GateVisit",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("proposal", models.IntegerField()),
                ("at", models.DateTimeField()),
                ("before", models.IntegerField(null=True)),
                ("before_at", models.DateTimeField(null=True)),
                (
                    "gate",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="visits", to="approvals.gate"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("gate", "user"), name="one_visit_per_person_and_gate")],
            },
        ),
    ]
