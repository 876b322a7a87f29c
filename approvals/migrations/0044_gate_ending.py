import sys

from django.db import migrations, models


def name_policies(apps, schema_editor):
    """Say which policies are stricter from now on: one rejection rejects, where they asked for several."""
    policies = apps.get_model("approvals", "Policy").objects.select_related("team")
    newest = {(each.team_id, each.name): each for each in policies.order_by("version")}
    for each in newest.values():
        if each.denials > 1 or '"denials"' in each.rules:
            sys.stdout.write(
                f"\n  {each.team.name}, policy {each.name}: it asked for several rejections; one rejects from now on."
            )


class Migration(migrations.Migration):
    dependencies = [("approvals", "0043_owed_samples_by_tools")]
    accepted = {"unknown-effect": "it only reads, and says what it found"}

    operations = [
        migrations.AddField("gate", "ending", models.CharField(db_default="", default="", max_length=64)),
        migrations.AlterField("policy", "denials", models.PositiveSmallIntegerField(db_default=1, default=1)),
        migrations.RunPython(name_policies, migrations.RunPython.noop),
    ]
