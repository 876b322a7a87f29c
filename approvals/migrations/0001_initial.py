import datetime
import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


# Vacuum what changes in place long before a fifth of it is dead, which in a table of years is months of updates.
SOON = "autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02"

# Whose people decide under a policy: those of the groups that it names, or else its own team's.
REVIEWING_TEAMS = """
CREATE VIEW public.approvals_reviewingteam (policy_id, team_id) AS
SELECT policy.id, coalesce(named.group_id, policy.team_id)
FROM approvals_policy policy LEFT JOIN approvals_policy_groups named ON named.policy_id = policy.id
"""


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('auth', '0012_alter_user_first_name_max_length'),
        ('checkpoints', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='ReviewingTeam',
            fields=[
                ('pk', models.CompositePrimaryKey('policy_id', 'team_id', blank=True, editable=False, primary_key=True, serialize=False)),
            ],
            options={
                'managed': False,
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='Delivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('message', models.CharField(max_length=40, unique=True)),
                ('kind', models.CharField(max_length=30)),
                ('body', models.BinaryField()),
                ('status', models.CharField(choices=[('pending', 'Pending'), ('delivered', 'Delivered'), ('failed', 'Failed')], default='pending', max_length=9)),
                ('result', models.CharField(blank=True, default='', max_length=20)),
                ('attempts', models.IntegerField(default=0)),
                ('tries', models.IntegerField(default=0)),
                ('next_attempt_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), null=True)),
                ('busy_until', models.DateTimeField(null=True)),
                ('token', models.IntegerField(default=0)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('finished_at', models.DateTimeField(null=True)),
            ],
            options={
                'verbose_name_plural': 'deliveries',
            },
        ),
        migrations.CreateModel(
            name='Grant',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('action', models.CharField(blank=True, max_length=100)),
                ('effect', models.CharField(max_length=100)),
            ],
        ),
        migrations.CreateModel(
            name='Looking',
            fields=[
                ('socket', models.CharField(max_length=120, primary_key=True, serialize=False)),
                ('until', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='Outcome',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('approved', 'Approved'), ('edited', 'Approved with an edit'), ('rejected', 'Rejected'), ('answered', 'Answered'), ('mixed', 'Decided action by action'), ('expired', 'Expired: nobody answered in time'), ('withdrawn', 'Withdrawn')], max_length=10)),
                ('arguments', models.BinaryField(default=b'{}')),
                ('patch', models.BinaryField(default=b'[]')),
                ('then', models.CharField(blank=True, default='', max_length=8)),
                ('back_to', models.CharField(blank=True, default='', max_length=100)),
                ('answer', models.BinaryField(default=b'null')),
                ('feedback', models.BinaryField(default=b'')),
                ('seen', models.BinaryField()),
                ('to_run', models.BinaryField(null=True)),
                ('bound', models.BinaryField(default=b'{}')),
                ('preconditions', models.BinaryField(db_default=b'[]', default=b'[]')),
                ('by', models.CharField(max_length=120)),
                ('by_name', models.CharField(blank=True, default='', max_length=150)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.CreateModel(
            name='Policy',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.SlugField(max_length=60)),
                ('version', models.PositiveIntegerField(default=1)),
                ('quorum', models.PositiveSmallIntegerField(default=1, validators=[django.core.validators.MinValueValidator(1)])),
                ('separation', models.BooleanField(default=True)),
                ('deadline', models.DurationField(blank=True, null=True)),
                ('on_expiry', models.CharField(choices=[('expire', 'Expire: nothing runs, the agent is told that nobody answered in time'), ('approve', 'Approve when nobody answered in time')], default='expire', max_length=8)),
                ('whole_state', models.BooleanField(db_default=False, default=False, help_text="Reviewers may edit the run's whole saved state as JSON, not only the values that the gate asks about. The agent's own rules still check the edit, and others must approve again. If a gate has several actions with a verdict each, only the API accepts such an edit.", verbose_name='allow editing the whole state')),
                ('reason_required', models.BooleanField(db_default=True, default=True, help_text='The reason is kept with the decision. The agent reads it if the run is sent back.', verbose_name='require a reason to reject')),
                ('step_up', models.BooleanField(db_default=False, default=False)),
                ('registered_only', models.BooleanField(db_default=False, default=False, help_text='Every action must name a tool that is registered for the team, and match its schema. Other requests of external agents are refused; a run of an agent on this server is held, and people are asked how to continue.', verbose_name='registered tools only')),
                ('withdraw_after', models.DurationField(blank=True, null=True)),
                ('hourly', models.PositiveIntegerField(blank=True, db_default=120, default=120, null=True, validators=[django.core.validators.MinValueValidator(1)])),
                ('pause', models.DurationField(blank=True, db_default=datetime.timedelta(seconds=600), default=datetime.timedelta(seconds=600), null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'verbose_name_plural': 'policies',
            },
        ),
        migrations.CreateModel(
            name='Proposal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.IntegerField()),
                ('body', models.BinaryField()),
                ('digest', models.BinaryField()),
                ('patch', models.BinaryField(default=b'[]')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.CreateModel(
            name='Tool',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(help_text='The name that agents use, such as bank.wire. If the team has it, saving makes its next version.', max_length=100, validators=[django.core.validators.RegexValidator('\\A(?:[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99})\\Z', 'Write plain letters, digits and . : _ -')])),
                ('version', models.PositiveIntegerField(default=1)),
                ('title', models.CharField(help_text='What it does, as reviewers read it, such as “Wire money”.', max_length=200)),
                ('schema', models.JSONField(verbose_name='arguments')),
                ('pinned', models.JSONField(blank=True, default=list)),
                ('risk', models.CharField(choices=[('low', 'Low'), ('medium', 'Medium'), ('high', 'High'), ('critical', 'Critical')], default='high', help_text='The lowest risk of a gate with this tool. An agent can state a higher risk, but not a lower one.', max_length=8)),
                ('irreversible', models.BooleanField(default=False, verbose_name='cannot be undone')),
                ('undo', models.CharField(blank=True, help_text='What undoes it, as reviewers read it, such as bank.recall. Empty: unknown.', max_length=100, verbose_name='undone by')),
                ('used', models.BooleanField(default=True, help_text='When off, the tool counts as not registered from this version on.', verbose_name='in use')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.CreateModel(
            name='Upload',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=64)),
                ('size', models.BigIntegerField()),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.CreateModel(
            name='Webhook',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('agent', models.CharField(blank=True, default='', max_length=100)),
                ('url', models.CharField(max_length=2000)),
                ('purpose', models.CharField(blank=True, default='', max_length=100)),
                ('status', models.CharField(choices=[('enabled', 'Enabled'), ('disabled', 'Disabled'), ('removed', 'Removed')], default='enabled', max_length=8)),
                ('reason', models.CharField(blank=True, choices=[('by_hand', 'Somebody disabled it'), ('gone', 'The receiver answered 410: it accepts no more messages'), ('failing', 'Nothing could be delivered for days'), ('secret_lost', 'The key that its secret was made with is gone: rotate the secret')], default='', max_length=12)),
                ('key', models.CharField(max_length=16)),
                ('salt', models.BinaryField()),
                ('former_key', models.CharField(blank=True, default='', max_length=16)),
                ('former_salt', models.BinaryField(default=b'')),
                ('former_until', models.DateTimeField(blank=True, null=True)),
                ('failing_since', models.DateTimeField(blank=True, null=True)),
                ('by', models.CharField(max_length=120)),
                ('by_name', models.CharField(default='', max_length=150)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'permissions': [('manage_webhooks', 'May manage webhooks')],
            },
        ),
        migrations.CreateModel(
            name='Decision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('verdict', models.CharField(choices=[('approve', 'Approved'), ('edit', 'Approved with an edit'), ('reject', 'Rejected'), ('answer', 'Answered'), ('mixed', 'Decided action by action')], max_length=8)),
                ('verdicts', models.BinaryField(default=b'{}')),
                ('then', models.CharField(blank=True, choices=[('stop', 'Stop the run'), ('back', 'Send it back')], default='', max_length=8)),
                ('back_to', models.CharField(blank=True, default='', max_length=100)),
                ('answer', models.BinaryField(default=b'null')),
                ('preconditions', models.BinaryField(db_default=b'[]', default=b'[]')),
                ('repeats', models.BinaryField(db_default=b'[]', default=b'[]')),
                ('comment', models.BinaryField(default=b'')),
                ('seen', models.BinaryField()),
                ('second_look', models.BooleanField(db_default=False, default=False)),
                ('counts', models.BooleanField(default=True)),
                ('key', models.CharField(max_length=80)),
                ('request', models.BinaryField()),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Attempt',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.IntegerField()),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('result', models.CharField(blank=True, default='', max_length=20)),
                ('status', models.IntegerField(null=True)),
                ('duration', models.DurationField(null=True)),
                ('delivery', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='log', to='approvals.delivery')),
            ],
        ),
        migrations.CreateModel(
            name='Draft',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('proposal', models.IntegerField()),
                ('body', models.BinaryField()),
                ('kept_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Gate',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('checkpoint', models.UUIDField()),
                ('step', models.CharField(max_length=100)),
                ('kind', models.CharField(choices=[('review', 'Asks for a decision'), ('recovery', 'Asks how to go on after a fault')], default='review', max_length=8)),
                ('status', models.CharField(choices=[('open', 'Open'), ('decided', 'Decided'), ('expired', 'Expired'), ('withdrawn', 'Withdrawn')], default='open', max_length=10)),
                ('version', models.IntegerField(default=1)),
                ('proposal', models.IntegerField(default=1)),
                ('title', models.CharField(max_length=200)),
                ('terms', models.TextField(db_default='', default='')),
                ('risk', models.CharField(choices=[('low', 'Low'), ('medium', 'Medium'), ('high', 'High'), ('critical', 'Critical')], default='medium', max_length=8)),
                ('card', models.BinaryField()),
                ('deadline', models.DateTimeField(null=True)),
                ('likeness', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=32), db_default=[], default=list, size=None)),
                ('attempt', models.PositiveSmallIntegerField(db_default=1, default=1)),
                ('opened_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('closed_at', models.DateTimeField(null=True)),
                ('asked_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('rejected_before', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='approvals.gate')),
                ('replaces', models.ManyToManyField(related_name='replacements', to='approvals.gate')),
            ],
            options={
                'permissions': [('decide_gate', 'May decide gates'), ('reveal_secret', 'May reveal secrets')],
            },
        ),
        migrations.AddField(
            model_name='gate',
            name='run',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='gates', to='checkpoints.run'),
        ),
        migrations.AddField(
            model_name='gate',
            name='team',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='gates', to='auth.group'),
        ),
        migrations.AddField(
            model_name='draft',
            name='gate',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='drafts', to='approvals.gate'),
        ),
        migrations.AddField(
            model_name='delivery',
            name='gate',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='approvals.gate'),
        ),
        migrations.AddField(
            model_name='decision',
            name='gate',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='decisions', to='approvals.gate'),
        ),
        migrations.AddField(
            model_name='looking',
            name='gate',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='approvals.gate'),
        ),
        migrations.AddField(
            model_name='looking',
            name='user',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='outcome',
            name='decisions',
            field=models.ManyToManyField(related_name='+', to='approvals.decision'),
        ),
        migrations.AddField(
            model_name='outcome',
            name='gate',
            field=models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='outcome', to='approvals.gate'),
        ),
        migrations.AddField(
            model_name='grant',
            name='outcome',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='grants', to='approvals.outcome'),
        ),
        migrations.AddField(
            model_name='policy',
            name='groups',
            field=models.ManyToManyField(blank=True, related_name='+', to='auth.group'),
        ),
        migrations.AddField(
            model_name='policy',
            name='team',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='policies', to='auth.group'),
        ),
        migrations.AddField(
            model_name='gate',
            name='policy',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='gates', to='approvals.policy'),
        ),
        migrations.AddField(
            model_name='proposal',
            name='by',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='proposal',
            name='gate',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='proposals', to='approvals.gate'),
        ),
        migrations.AddField(
            model_name='outcome',
            name='proposal',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='approvals.proposal'),
        ),
        migrations.AddField(
            model_name='decision',
            name='proposal',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='decisions', to='approvals.proposal'),
        ),
        migrations.AddField(
            model_name='tool',
            name='team',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='tools', to='auth.group'),
        ),
        migrations.AddField(
            model_name='upload',
            name='gate',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='uploads', to='approvals.gate'),
        ),
        migrations.AddField(
            model_name='upload',
            name='user',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='webhook',
            name='team',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='auth.group'),
        ),
        migrations.AddField(
            model_name='delivery',
            name='webhook',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='approvals.webhook'),
        ),
        migrations.AddConstraint(
            model_name='attempt',
            constraint=models.UniqueConstraint(fields=('delivery', 'number'), name='attempts_are_counted'),
        ),
        migrations.AddConstraint(
            model_name='draft',
            constraint=models.UniqueConstraint(fields=('gate', 'user'), name='one_draft_per_person_and_gate'),
        ),
        migrations.AddConstraint(
            model_name='grant',
            constraint=models.UniqueConstraint(fields=('outcome', 'action', 'effect'), name='grant_is_given_once'),
        ),
        migrations.AddConstraint(
            model_name='policy',
            constraint=models.UniqueConstraint(fields=('team', 'name', 'version'), name='policy_version_is_taken_once'),
        ),
        migrations.AddConstraint(
            model_name='policy',
            constraint=models.CheckConstraint(condition=models.Q(('quorum__gte', 1)), name='policy_needs_somebody'),
        ),
        migrations.AddIndex(
            model_name='gate',
            index=models.Index(models.F('team'), models.F('deadline'), models.F('opened_at'), models.F('id'), condition=models.Q(('status', 'open')), name='gate_of_team'),
        ),
        migrations.AddIndex(
            model_name='gate',
            index=models.Index(models.F('policy'), models.F('deadline'), models.F('opened_at'), models.F('id'), condition=models.Q(('status', 'open')), name='gate_of_policy'),
        ),
        migrations.AddIndex(
            model_name='gate',
            index=models.Index(models.F('team'), models.OrderBy(models.F('closed_at'), descending=True), models.OrderBy(models.F('id'), descending=True), condition=models.Q(('status', 'open'), _negated=True), name='gate_of_team_closed'),
        ),
        migrations.AddIndex(
            model_name='gate',
            index=models.Index(models.F('policy'), models.OrderBy(models.F('closed_at'), descending=True), models.OrderBy(models.F('id'), descending=True), condition=models.Q(('status', 'open'), _negated=True), name='gate_of_policy_closed'),
        ),
        migrations.AddIndex(
            model_name='gate',
            index=django.contrib.postgres.indexes.GinIndex(fields=['likeness'], name='gate_likeness'),
        ),
        migrations.AddIndex(
            model_name='gate',
            index=models.Index(models.F('team'), models.F('opened_at'), name='gate_of_team_opened'),
        ),
        migrations.AddIndex(
            model_name='gate',
            index=django.contrib.postgres.indexes.GinIndex(django.contrib.postgres.search.SearchVector('terms', config='simple'), name='gate_terms'),
        ),
        migrations.AddIndex(
            model_name='gate',
            index=models.Index(models.F('deadline'), condition=models.Q(('deadline__isnull', False), ('status', 'open')), name='gate_overdue'),
        ),
        migrations.AddConstraint(
            model_name='gate',
            constraint=models.UniqueConstraint(fields=('run', 'checkpoint'), name='one_gate_per_checkpoint'),
        ),
        migrations.AddConstraint(
            model_name='proposal',
            constraint=models.UniqueConstraint(fields=('gate', 'number'), name='proposal_number_is_taken_once'),
        ),
        migrations.AddIndex(
            model_name='decision',
            index=models.Index(fields=['user', '-id'], name='decision_of_user'),
        ),
        migrations.AddConstraint(
            model_name='decision',
            constraint=models.UniqueConstraint(fields=('gate', 'user', 'key'), name='decision_key_is_used_once'),
        ),
        migrations.AddConstraint(
            model_name='decision',
            constraint=models.UniqueConstraint(condition=models.Q(('counts', True)), fields=('proposal', 'user'), name='one_decision_per_person_and_proposal'),
        ),
        migrations.AddConstraint(
            model_name='tool',
            constraint=models.UniqueConstraint(fields=('team', 'name', 'version'), name='tool_version_is_taken_once'),
        ),
        migrations.AddConstraint(
            model_name='tool',
            constraint=models.CheckConstraint(condition=models.Q(('irreversible', False), ('undo', ''), _connector='OR'), name='tool_is_undone_or_cannot_be'),
        ),
        migrations.AddConstraint(
            model_name='upload',
            constraint=models.UniqueConstraint(fields=('gate', 'digest'), name='one_upload_per_gate_and_content'),
        ),
        migrations.AddIndex(
            model_name='webhook',
            index=models.Index(condition=models.Q(('status', 'enabled')), fields=['team'], name='webhook_of_team'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(condition=models.Q(('status', 'pending')), fields=['webhook', 'next_attempt_at'], name='delivery_due'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(fields=['webhook', '-id'], name='delivery_of_webhook'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(fields=['created_at'], name='delivery_by_age'),
        ),
        migrations.AddConstraint(
            model_name='delivery',
            constraint=models.UniqueConstraint(fields=('webhook', 'gate', 'kind'), name='one_delivery_per_webhook_and_event'),
        ),
        migrations.AddConstraint(
            model_name='delivery',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('next_attempt_at__isnull', False), ('status', 'pending')), models.Q(models.Q(('status', 'pending'), _negated=True), ('next_attempt_at__isnull', True)), _connector='OR'), name='only_a_pending_delivery_is_due'),
        ),
        migrations.RunSQL(f"ALTER TABLE approvals_gate SET ({SOON})", migrations.RunSQL.noop),
        # Presence is not worth a line of the write-ahead log.
        migrations.RunSQL("ALTER TABLE approvals_looking SET UNLOGGED", migrations.RunSQL.noop),
        migrations.RunSQL(REVIEWING_TEAMS, "DROP VIEW public.approvals_reviewingteam"),
    ]
