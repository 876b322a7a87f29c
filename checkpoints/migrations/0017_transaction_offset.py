import checkpoints.events.event
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('checkpoints', '0016_prune_lines_that_agree'),
    ]

    operations = [
        migrations.RunSQL(
            'CREATE FUNCTION public.checkpoints_xid_offset() RETURNS bigint LANGUAGE sql STABLE RETURN 0::bigint',
            'DROP FUNCTION public.checkpoints_xid_offset()',
        ),
        migrations.AlterField(
            model_name='event',
            name='xid',
            field=models.BigIntegerField(db_default=checkpoints.events.event.CurrentTransaction()),
        ),
    ]
