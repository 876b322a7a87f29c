from django.db import migrations

# The beginning of the reason told it before.
FROZEN = """
UPDATE checkpoints_run SET frozen_at = coalesce(finished_at, created_at)
WHERE status = 'failed' AND reason LIKE 'Integrity fault%' AND frozen_at IS NULL
"""


class Migration(migrations.Migration):
    accepted = {"data-in-one-go": "Few runs were ever frozen."}
    dependencies = [("checkpoints", "0022_run_frozen_at")]

    operations = [migrations.RunSQL(FROZEN, migrations.RunSQL.noop)]
