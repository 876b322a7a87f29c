from django.db import migrations

# The format of new runs (checkpoints.postgresql.migrating): the first where there are runs, which a release that does
# not know the second may be at work on, else the second.
MADE = """
DO $$ BEGIN
    EXECUTE format(
        'CREATE FUNCTION public.checkpoints_new_codec() RETURNS integer LANGUAGE sql STABLE RETURN %s',
        CASE WHEN EXISTS (SELECT FROM checkpoints_run) THEN 0 ELSE 4 END);
END $$
"""


class Migration(migrations.Migration):
    dependencies = [("checkpoints", "0001_initial")]
    accepted = {"unknown-effect": "it only adds a function, which the running release does not call"}

    operations = [migrations.RunSQL(MADE, "DROP FUNCTION public.checkpoints_new_codec()")]
