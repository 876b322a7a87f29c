from django.db import migrations

FUNCTION = """
CREATE FUNCTION public.checkpoints_refuse_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'USAGE') THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'An event has the number and the time of the transaction that writes it.'
        USING ERRCODE = 'check_violation', CONSTRAINT = 'event_is_of_its_transaction';
END $$
"""
# The condition is looked at without a call of the function: it costs an honest event next to nothing.
TRIGGER = """
CREATE TRIGGER event_is_of_its_transaction BEFORE INSERT ON checkpoints_event FOR EACH ROW
WHEN (NEW.xid <> pg_current_xact_id()::text::bigint + public.checkpoints_xid_offset()
    OR NEW.at NOT BETWEEN clock_timestamp() - interval '1 day' AND clock_timestamp() + interval '1 day')
EXECUTE FUNCTION public.checkpoints_refuse_event()
"""


class Migration(migrations.Migration):
    accepted = {'unknown-effect': 'the trigger lets pass what every release writes, the number and time of the transaction'}

    dependencies = [
        ('checkpoints', '0019_autovacuum'),
    ]

    operations = [
        migrations.RunSQL(FUNCTION, 'DROP FUNCTION public.checkpoints_refuse_event()'),
        migrations.RunSQL(TRIGGER, 'DROP TRIGGER event_is_of_its_transaction ON checkpoints_event'),
    ]
