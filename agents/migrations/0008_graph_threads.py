import agents.models.graph_thread
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0007_device_requests"), ("checkpoints", "0009_pruned_waits")]

    operations = [
        migrations.CreateModel(
            name="GraphThread",
            fields=[
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="graph",
                        serialize=False,
                        to="checkpoints.run",
                    ),
                ),
                ("namespace", models.TextField(blank=True)),
                ("mask", models.UUIDField(default=agents.models.graph_thread.NO_MASK)),
            ],
        ),
        migrations.CreateModel(
            name="ThreadCall",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "name", "run_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.TextField()),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="checkpoints.run",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ThreadWrite",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "run_id", "checkpoint", "task", "number",
                        blank=True, editable=False, primary_key=True, serialize=False,
                    ),
                ),
                ("checkpoint", models.UUIDField()),
                ("task", models.TextField()),
                ("number", models.IntegerField()),
                ("path", models.TextField(blank=True)),
                ("codec", models.SmallIntegerField()),
                ("value", models.BinaryField()),
                ("digest", models.BinaryField()),
                (
                    "run",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="checkpoints.run",
                    ),
                ),
            ],
        ),
        # PostgreSQL would try to compress again what is compressed.
        migrations.RunSQL("ALTER TABLE agents_threadwrite ALTER value SET STORAGE EXTERNAL", migrations.RunSQL.noop),
    ]
