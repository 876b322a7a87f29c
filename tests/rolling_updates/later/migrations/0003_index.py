from django.db import migrations


class Migration(migrations.Migration):
    """One that a release must not have: it stops writers. The test of migrations has to name it."""

    dependencies = [("later", "0002_setting")]

    operations = [migrations.RunSQL("CREATE INDEX IF NOT EXISTS later_at ON checkpoints_event (at)", "DROP INDEX later_at")]
