from django.db import migrations

# The release before this one writes the column still; a later one drops it.
KEEP = """
INSERT INTO approvals_profile (user_id, zone)
SELECT user_id, zone FROM approvals_notificationpreference WHERE zone <> 'UTC'
ON CONFLICT (user_id) DO UPDATE SET zone = EXCLUDED.zone WHERE approvals_profile.zone = ''
"""


class Migration(migrations.Migration):
    dependencies = [("approvals", "0032_desk_lent")]
    accepted = {"data-in-one-go": "it writes one small row for each person who chose a zone, which no event is about"}

    operations = [
        migrations.RunSQL(KEEP, migrations.RunSQL.noop),
        migrations.SeparateDatabaseAndState([], [migrations.RemoveField("notificationpreference", "zone")]),
    ]
