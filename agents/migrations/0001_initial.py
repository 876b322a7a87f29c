import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


# Vacuum what changes in place long before a fifth of it is dead, which in a table of years is months of updates.
SOON = "autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02"


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('approvals', '0001_initial'),
        ('auth', '0012_alter_user_first_name_max_length'),
        ('checkpoints', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Answer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('who', models.CharField(max_length=40)),
                ('key', models.CharField(max_length=200)),
                ('request', models.BinaryField()),
                ('status', models.SmallIntegerField(default=0)),
                ('body', models.BinaryField(default=b'')),
                ('media_type', models.CharField(blank=True, default='', max_length=60)),
                ('location', models.CharField(blank=True, default='', max_length=200)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.CreateModel(
            name='Client',
            fields=[
                ('run', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='client', serialize=False, to='checkpoints.run')),
                ('name', models.CharField(blank=True, default='', max_length=120)),
                ('lease', models.FloatField(default=60.0)),
                ('heard_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('missed_at', models.DateTimeField(null=True)),
                ('deferred', models.BooleanField(db_default=False, default=False)),
            ],
        ),
        migrations.CreateModel(
            name='Effect',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('step', models.CharField(max_length=100)),
                ('key', models.CharField(max_length=64, unique=True)),
                ('action', models.CharField(blank=True, db_default='', default='', max_length=100)),
                ('base', models.UUIDField()),
                ('input_digest', models.BinaryField()),
                ('occurrence', models.IntegerField(default=0)),
                ('generation', models.IntegerField(default=0)),
                ('attempts', models.IntegerField(default=1)),
                ('token', models.BigIntegerField()),
                ('irreversible', models.BooleanField(default=False)),
                ('again', models.BooleanField(db_default=False, default=False)),
                ('landings', django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), db_default=[], default=list, size=None)),
                ('status', models.CharField(choices=[('intended', 'Intended'), ('done', 'Done'), ('failed', 'Failed: provably not done'), ('unknown', 'Unknown: it may have happened'), ('abandoned', "Unknown; done again on a person's order"), ('undone', 'Undone'), ('kept', 'Kept, on an abandoned branch')], default='intended', max_length=10)),
                ('result', models.BinaryField(default=b'null')),
                ('error', models.CharField(blank=True, default='', max_length=500)),
                ('intended_at', models.DateTimeField(auto_now_add=True)),
                ('settled_at', models.DateTimeField(null=True)),
                ('version', models.IntegerField(db_default=0, default=0)),
            ],
        ),
        migrations.CreateModel(
            name='Failure',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('base', models.UUIDField()),
                ('step', models.CharField(max_length=100)),
                ('attempt', models.SmallIntegerField()),
                ('error', models.CharField(max_length=300)),
                ('traceback', models.BinaryField(default=b'')),
                ('validator', models.CharField(blank=True, db_default='', default='', max_length=100)),
                ('ring', models.SmallIntegerField(db_default=0, default=0)),
                ('seq', models.IntegerField(db_default=0, default=0)),
                ('at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name='Memo',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('base', models.UUIDField()),
                ('step', models.CharField(max_length=100)),
                ('name', models.CharField(max_length=100)),
                ('digest', models.BinaryField()),
                ('result', models.BinaryField()),
                ('token', models.BigIntegerField()),
                ('at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name='Registration',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.CreateModel(
            name='Spoken',
            fields=[
                ('run', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to='checkpoints.run')),
                ('token', models.BigIntegerField()),
                ('base', models.UUIDField()),
                ('step', models.CharField(max_length=100)),
                ('attempt', models.PositiveIntegerField()),
                ('text', models.TextField()),
                ('at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='SweeperPass',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'verbose_name_plural': 'sweeper passes',
            },
        ),
        migrations.CreateModel(
            name='Token',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('agent', models.CharField(blank=True, default='', max_length=100)),
                ('policy', models.CharField(blank=True, db_default='', default='', max_length=60)),
                ('name', models.CharField(max_length=100)),
                ('scopes', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('runs:read', 'Read runs, checkpoints, agents and events'), ('runs:start', 'Start runs, and register external agents'), ('runs:work', 'Work on external runs: save checkpoints, open gates, report effects'), ('runs:order', 'Rewind, edit, fork, settle and cancel runs'), ('gates:read', 'Read gates and what decisions would do'), ('gates:decide', 'Decide gates as the person whose token it is'), ('webhooks:manage', 'Manage webhooks and read their deliveries')], max_length=20), size=None)),
                ('digest', models.BinaryField(unique=True)),
                ('hint', models.CharField(max_length=12)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('expires_at', models.DateTimeField()),
                ('last_used_at', models.DateTimeField(null=True)),
                ('revoked_at', models.DateTimeField(null=True)),
                ('revoked_by', models.CharField(blank=True, default='', max_length=120)),
            ],
        ),
        migrations.CreateModel(
            name='Worker',
            fields=[
                ('name', models.CharField(max_length=120, primary_key=True, serialize=False)),
                ('plans', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), default=list, size=None)),
                ('heard_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('stopped', models.BooleanField(db_default=False, default=False)),
            ],
        ),
        migrations.AddIndex(
            model_name='answer',
            index=models.Index(models.F('at'), name='answer_by_age'),
        ),
        migrations.AddConstraint(
            model_name='answer',
            constraint=models.UniqueConstraint(fields=('who', 'key'), name='key_is_used_once'),
        ),
        migrations.AddField(
            model_name='client',
            name='owner',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='effect',
            name='grant',
            field=models.OneToOneField(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='effect_row', to='approvals.grant'),
        ),
        migrations.AddField(
            model_name='effect',
            name='run',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='effects', to='checkpoints.run'),
        ),
        migrations.AddField(
            model_name='effect',
            name='taken_from',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='agents.effect'),
        ),
        migrations.AddField(
            model_name='effect',
            name='undoes',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='undos', to='agents.effect'),
        ),
        migrations.AddField(
            model_name='failure',
            name='run',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='failures', to='checkpoints.run'),
        ),
        migrations.AddField(
            model_name='memo',
            name='run',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='memos', to='checkpoints.run'),
        ),
        migrations.AddField(
            model_name='registration',
            name='plan',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='checkpoints.plan'),
        ),
        migrations.AddField(
            model_name='registration',
            name='team',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='auth.group'),
        ),
        migrations.AddField(
            model_name='token',
            name='team',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='auth.group'),
        ),
        migrations.AddField(
            model_name='token',
            name='user',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='tokens', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='client',
            name='token',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='agents.token'),
        ),
        migrations.AddIndex(
            model_name='effect',
            index=models.Index(models.F('run'), models.F('step'), name='effect_of_run'),
        ),
        migrations.AddIndex(
            model_name='failure',
            index=models.Index(fields=['run', '-id'], name='failure_of_run'),
        ),
        migrations.AddConstraint(
            model_name='memo',
            constraint=models.UniqueConstraint(fields=('run', 'base', 'step', 'name', 'digest'), name='call_is_kept_once'),
        ),
        migrations.AddConstraint(
            model_name='registration',
            constraint=models.UniqueConstraint(fields=('plan', 'team'), name='plan_is_registered_once_a_team'),
        ),
        migrations.AddIndex(
            model_name='token',
            index=models.Index(fields=['user', '-id'], name='token_of_user'),
        ),
        migrations.AddConstraint(
            model_name='token',
            constraint=models.CheckConstraint(condition=models.Q(('agent', ''), models.Q(('scopes__overlap', ['runs:order', 'gates:decide', 'webhooks:manage']), _negated=True), _connector='OR'), name='token_of_an_agent_never_decides'),
        ),
        migrations.AddConstraint(
            model_name='token',
            constraint=models.CheckConstraint(condition=models.Q(('agent', ''), ('team__isnull', False), _connector='OR'), name='token_of_an_agent_is_of_one_team'),
        ),
        migrations.AddConstraint(
            model_name='token',
            constraint=models.CheckConstraint(condition=models.Q(('policy', ''), models.Q(('agent', ''), _negated=True), _connector='OR'), name='token_with_a_policy_is_an_agents'),
        ),
        migrations.AddConstraint(
            model_name='token',
            constraint=models.CheckConstraint(condition=models.Q(('expires_at__gt', models.F('created_at'))), name='token_expires_later'),
        ),
        migrations.AddIndex(
            model_name='client',
            index=models.Index(models.F('heard_at'), condition=models.Q(('deferred', False), ('missed_at', None)), name='client_heard'),
        ),
        migrations.AddIndex(
            model_name='client',
            index=models.Index(models.F('missed_at'), condition=models.Q(('missed_at__isnull', False)), name='client_missed'),
        ),
        migrations.RunSQL(f"ALTER TABLE agents_effect SET ({SOON})", migrations.RunSQL.noop),
        # What is gone with the step is not worth a line of the write-ahead log.
        migrations.RunSQL("ALTER TABLE agents_spoken SET UNLOGGED", migrations.RunSQL.noop),
    ]
