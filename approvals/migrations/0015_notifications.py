import approvals.models.notifications.preference
import datetime
import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    accepted = {"several-tables": "It only makes empty tables: those that they refer to are locked for a moment, people's first."}

    dependencies = [
        ("approvals", "0014_policy_messages"),
        ('auth', '0012_alter_user_first_name_max_length'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='ChannelState',
            fields=[
                ('channel', models.CharField(max_length=12, primary_key=True, serialize=False)),
                ('token', models.IntegerField(default=0)),
                ('busy_until', models.DateTimeField(null=True)),
                ('paused_until', models.DateTimeField(null=True)),
                ('failures', models.IntegerField(default=0)),
                ('failing_since', models.DateTimeField(null=True)),
                ('word', models.CharField(default='', max_length=30)),
            ],
            options={
                'verbose_name': 'channel',
            },
        ),
        migrations.CreateModel(
            name='ChannelAddress',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('channel', models.CharField(max_length=12)),
                ('value', models.TextField()),
                ('mark', models.CharField(max_length=64)),
                ('label', models.CharField(max_length=100)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('gone_at', models.DateTimeField(null=True)),
                ('gone_word', models.CharField(db_default='', default='', max_length=30)),
                ('team', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='auth.group')),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Notice',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('event', models.BigIntegerField(null=True)),
                ('kind', models.CharField(max_length=10)),
                ('channel', models.CharField(max_length=12)),
                ('run', models.BigIntegerField(null=True)),
                ('urgency', models.SmallIntegerField(db_default=1, default=1)),
                ('status', models.CharField(choices=[('pending', 'Pending'), ('sent', 'Sent'), ('failed', 'Failed'), ('dropped', 'Not needed any more')], default='pending', max_length=8)),
                ('word', models.CharField(db_default='', default='', max_length=30)),
                ('reference', models.CharField(db_default='', default='', max_length=200)),
                ('attempts', models.IntegerField(db_default=0, default=0)),
                ('next_attempt_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), null=True)),
                ('busy_until', models.DateTimeField(null=True)),
                ('token', models.IntegerField(db_default=0, default=0)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('finished_at', models.DateTimeField(null=True)),
                ('opened_at', models.DateTimeField(null=True)),
                ('address', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='approvals.channeladdress')),
                ('gate', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='approvals.gate')),
                ('team', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='auth.group')),
                ('user', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='NoticeCursor',
            fields=[
                ('id', models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ('xid', models.BigIntegerField()),
                ('event', models.BigIntegerField()),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='one_notice_cursor')],
            },
        ),
        migrations.CreateModel(
            name='NotificationPreference',
            fields=[
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to=settings.AUTH_USER_MODEL)),
                ('choices', models.JSONField(db_default={}, default=dict)),
                ('zone', models.CharField(db_default='UTC', default='UTC', max_length=64)),
                ('quiet_from', models.TimeField(null=True)),
                ('quiet_until', models.TimeField(null=True)),
                ('quiet_days', django.contrib.postgres.fields.ArrayField(base_field=models.SmallIntegerField(), db_default=[], default=list, size=None)),
                ('critical_passes', models.BooleanField(db_default=True, default=True)),
                ('remind_before', models.DurationField(null=True)),
                ('digest_at', django.contrib.postgres.fields.ArrayField(base_field=models.TimeField(), db_default=[], default=list, size=None)),
                ('digest_days', django.contrib.postgres.fields.ArrayField(base_field=models.SmallIntegerField(), db_default=[0, 1, 2, 3, 4], default=approvals.models.notifications.preference.weekdays, size=None)),
                ('digest_next', models.DateTimeField(null=True)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('digest_next__isnull', False)), fields=['digest_next'], name='digest_due')],
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('quiet_from__isnull', True), ('quiet_until__isnull', True)), models.Q(('quiet_from__isnull', False), ('quiet_until__isnull', False)), _connector='OR'), name='quiet_hours_begin_and_end'), models.CheckConstraint(condition=models.Q(('remind_before__isnull', True), ('remind_before__gte', datetime.timedelta(0)), _connector='OR'), name='a_reminder_is_before')],
            },
        ),
        migrations.AddIndex(
            model_name='channeladdress',
            index=models.Index(condition=models.Q(('user__isnull', False)), fields=['user', 'channel'], name='address_of_person'),
        ),
        migrations.AddIndex(
            model_name='channeladdress',
            index=models.Index(condition=models.Q(('team__isnull', False)), fields=['team', 'channel'], name='address_of_team'),
        ),
        migrations.AddConstraint(
            model_name='channeladdress',
            constraint=models.UniqueConstraint(fields=('channel', 'user', 'team', 'mark'), name='one_address_once', nulls_distinct=False),
        ),
        migrations.AddConstraint(
            model_name='channeladdress',
            constraint=models.CheckConstraint(condition=models.Q(('user__isnull', True), ('team__isnull', True), _connector='XOR'), name='address_of_a_person_or_a_team'),
        ),
        migrations.AddIndex(
            model_name='notice',
            index=models.Index(models.F('channel'), models.F('urgency'), models.F('next_attempt_at'), condition=models.Q(('status', 'pending')), name='notice_due'),
        ),
        migrations.AddIndex(
            model_name='notice',
            index=models.Index(models.F('user'), models.OrderBy(models.F('id'), descending=True), condition=models.Q(('user__isnull', False)), name='notice_of_person'),
        ),
        migrations.AddIndex(
            model_name='notice',
            index=models.Index(fields=['created_at'], name='notice_by_age'),
        ),
        migrations.AddIndex(
            model_name='notice',
            index=models.Index(condition=models.Q(('status', 'failed')), fields=['finished_at'], name='notice_failed'),
        ),
        migrations.AddConstraint(
            model_name='notice',
            constraint=models.UniqueConstraint(condition=models.Q(('event__isnull', False)), fields=('event', 'kind', 'channel', 'user', 'address'), name='one_notice_of_an_event', nulls_distinct=False),
        ),
        migrations.AddConstraint(
            model_name='notice',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('next_attempt_at__isnull', False), ('status', 'pending')), models.Q(models.Q(('status', 'pending'), _negated=True), ('next_attempt_at__isnull', True)), _connector='OR'), name='only_a_pending_notice_is_due'),
        ),
    ]
