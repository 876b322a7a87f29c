"""Say which gates and effects there were before events covered their rows: nothing can be compared for those."""

from django.db import migrations
from django.db.models import Max


def begin(apps, schema_editor):
    from checkpoints.audit.covered_rows import BEGUN
    from checkpoints.events.event_proof import ROWS, proven
    from checkpoints.values.canonical_json import canonical

    newest = {
        name: apps.get_model(app, name).objects.aggregate(newest=Max("pk"))["newest"] or 0
        for app, name in (("approvals", "gate"), ("agents", "effect"))
    }
    if any(newest.values()):
        data = canonical(proven(BEGUN, "audit", 0, {ROWS: newest}))
        event = apps.get_model("checkpoints", "Event")
        event.objects.create(kind=BEGUN, subject="audit", actor="system", actor_name="Holdpoint", data=data)


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0013_workers"),
        ("approvals", "0018_decision_repeats"),
        ("checkpoints", "0016_prune_lines_that_agree"),
    ]

    operations = [migrations.RunPython(begin, migrations.RunPython.noop)]
