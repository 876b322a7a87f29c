import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0003_open_resources"), ("checkpoints", "0005_children")]

    operations = [
        migrations.CreateModel(
            name="ChildLink",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("base", models.UUIDField()),
                ("head", models.UUIDField()),
                ("step", models.CharField(max_length=100)),
                ("input_digest", models.BinaryField()),
                ("occurrence", models.IntegerField()),
                ("agent", models.CharField(max_length=100)),
                ("digest", models.BinaryField()),
                ("number", models.SmallIntegerField()),
                ("held", models.BooleanField(default=False)),
                (
                    "landings",
                    django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), default=list, size=None),
                ),
                (
                    "ordered",
                    models.CharField(
                        blank=True,
                        choices=[("", "none"), ("cancel", "cancel"), ("undo", "undo")],
                        default="",
                        max_length=8,
                    ),
                ),
                ("carried_out", models.BooleanField(default=False)),
                ("made_at", models.DateTimeField(auto_now_add=True)),
                (
                    "parent",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="child_rows",
                        to="checkpoints.run",
                    ),
                ),
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="as_child", to="checkpoints.run"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(models.F("parent"), condition=models.Q(("held", True)), name="child_held"),
                    models.Index(
                        models.F("parent"),
                        condition=models.Q(models.Q(("ordered", ""), _negated=True), ("carried_out", False)),
                        name="child_ordered",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("parent", "base", "step", "digest", "number", "head"), name="child_is_started_once"
                    )
                ],
            },
        ),
    ]
