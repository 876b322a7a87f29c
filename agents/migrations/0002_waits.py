import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0001_initial'),
        ('checkpoints', '0004_run_deadline'),
    ]

    operations = [
        migrations.AlterField(
            model_name='token',
            name='scopes',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('runs:read', 'Read runs, checkpoints, agents and events'), ('runs:start', 'Start runs, and register external agents'), ('runs:work', 'Work on external runs: save checkpoints, open gates, report effects'), ('runs:signal', 'Send signals to runs'), ('runs:order', 'Rewind, edit, fork, settle and cancel runs'), ('gates:read', 'Read gates and what decisions would do'), ('gates:decide', 'Decide gates as the person whose token it is'), ('webhooks:manage', 'Manage webhooks and read their deliveries')], max_length=20), size=None),
        ),
        migrations.CreateModel(
            name='Signal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100)),
                ('key', models.CharField(max_length=200)),
                ('value', models.BinaryField()),
                ('by', models.CharField(max_length=120)),
                ('by_name', models.CharField(blank=True, default='', max_length=150)),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='signals', to='checkpoints.run')),
            ],
        ),
        migrations.CreateModel(
            name='StepCheckpoint',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('base', models.UUIDField()),
                ('step', models.CharField(max_length=100)),
                ('name', models.CharField(blank=True, default='', max_length=100)),
                ('value', models.BinaryField()),
                ('digest', models.BinaryField()),
                ('token', models.BigIntegerField()),
                ('at', models.DateTimeField()),
                ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='step_checkpoints', to='checkpoints.run')),
            ],
        ),
        migrations.CreateModel(
            name='Wait',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('base', models.UUIDField()),
                ('step', models.CharField(max_length=100)),
                ('kind', models.CharField(choices=[('timer', 'timer'), ('signal', 'signal')], max_length=8)),
                ('name', models.CharField(max_length=100)),
                ('number', models.SmallIntegerField()),
                ('head', models.UUIDField()),
                ('input_digest', models.BinaryField()),
                ('occurrence', models.IntegerField()),
                ('due', models.DateTimeField(null=True)),
                ('ended_by', models.CharField(blank=True, default='', max_length=120)),
                ('made_at', models.DateTimeField(auto_now_add=True)),
                ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='waits', to='checkpoints.run')),
                ('signal', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='waits', to='agents.signal')),
            ],
        ),
        migrations.AddConstraint(
            model_name='signal',
            constraint=models.UniqueConstraint(fields=('run', 'name', 'key'), name='signal_is_kept_once'),
        ),
        migrations.AddConstraint(
            model_name='stepcheckpoint',
            constraint=models.UniqueConstraint(fields=('run', 'base', 'step', 'name'), name='step_checkpoint_is_newest'),
        ),
        migrations.AddIndex(
            model_name='wait',
            index=models.Index(models.F('run'), condition=models.Q(('signal__isnull', False)), name='wait_for_signal'),
        ),
        migrations.AddConstraint(
            model_name='wait',
            constraint=models.UniqueConstraint(fields=('run', 'base', 'step', 'kind', 'name', 'number'), name='wait_is_made_once'),
        ),
    ]
