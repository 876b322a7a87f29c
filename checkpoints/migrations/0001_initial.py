import checkpoints.events.event
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


# Readers of events compare transaction ids, which each server counts for itself: `manage.py restored` raises this.
OFFSET = "CREATE FUNCTION public.checkpoints_xid_offset() RETURNS bigint LANGUAGE sql STABLE RETURN 0::bigint"

# An event has the number and the time of the transaction that writes it: readers of events rely on that.
REFUSE_EVENT = """
CREATE FUNCTION public.checkpoints_refuse_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'USAGE') THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'An event has the number and the time of the transaction that writes it.'
        USING ERRCODE = 'check_violation', CONSTRAINT = 'event_is_of_its_transaction';
END $$
"""
# The condition is evaluated without a call of the function: it costs a normal event next to nothing.
REFUSED = """
CREATE TRIGGER event_is_of_its_transaction BEFORE INSERT ON checkpoints_event FOR EACH ROW
WHEN (NEW.xid <> pg_current_xact_id()::text::bigint + public.checkpoints_xid_offset()
    OR NEW.at NOT BETWEEN clock_timestamp() - interval '1 day' AND clock_timestamp() + interval '1 day')
EXECUTE FUNCTION public.checkpoints_refuse_event()
"""
# Vacuum rows that change in place long before a fifth are dead: in an old table that is months of updates.
SOON = "autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02"

# The permissions of active members in each team, by the team's permissions or by their own. One SELECT without a UNION:
# the planner inlines it into the query that joins it, and can use the indexes from either side.
RIGHTS = """
CREATE VIEW public.checkpoints_right (team_id, user_id, app, codename) AS
SELECT member.group_id, member.user_id, kind.app_label, granted.codename
FROM auth_user_groups member JOIN auth_user one ON one.id = member.user_id
CROSS JOIN auth_permission granted JOIN django_content_type kind ON kind.id = granted.content_type_id
WHERE one.is_active AND (
  EXISTS (SELECT FROM auth_group_permissions of_team
    WHERE of_team.group_id = member.group_id AND of_team.permission_id = granted.id)
  OR EXISTS (SELECT FROM auth_user_user_permissions own
    WHERE own.user_id = member.user_id AND own.permission_id = granted.id))
"""


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('contenttypes', '0002_remove_content_type_name'),
    ]

    operations = [
        migrations.RunSQL(OFFSET, "DROP FUNCTION public.checkpoints_xid_offset()"),
        migrations.CreateModel(
            name='Right',
            fields=[
                ('pk', models.CompositePrimaryKey('team_id', 'user_id', 'app', 'codename', blank=True, editable=False, primary_key=True, serialize=False)),
                ('team_id', models.IntegerField()),
                ('user_id', models.IntegerField()),
                ('app', models.CharField(max_length=100)),
                ('codename', models.CharField(max_length=100)),
            ],
            options={
                'managed': False,
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='Checkpoint',
            fields=[
                ('id', models.UUIDField(primary_key=True, serialize=False)),
                ('seq', models.IntegerField()),
                ('parent', models.UUIDField(null=True)),
                ('parent_digest', models.BinaryField(null=True)),
                ('kind', models.CharField(choices=[('input', 'Input'), ('step', 'Step'), ('gate', 'Gate'), ('rewind', 'Rewind'), ('fork', 'Fork'), ('edit', 'Edit'), ('recovery', 'Recovery'), ('reopen', 'Reopen'), ('reused', 'Reused'), ('repair', 'Repair'), ('skipped', 'Skipped'), ('upcast', 'Upcast')], max_length=10)),
                ('step', models.CharField(max_length=100)),
                ('next_step', models.CharField(default='', max_length=100)),
                ('occurrence', models.IntegerField(default=0)),
                ('attempt', models.SmallIntegerField(default=1)),
                ('token', models.BigIntegerField()),
                ('input_digest', models.BinaryField(null=True)),
                ('code_hash', models.BinaryField(null=True)),
                ('at', models.DateTimeField()),
                ('took_us', models.BigIntegerField(default=0)),
                ('state_digest', models.BinaryField()),
                ('digest', models.BinaryField()),
                ('anchor_seq', models.IntegerField()),
                ('codec', models.SmallIntegerField()),
                ('payload', models.BinaryField()),
                ('checksum', models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name='Chunk',
            fields=[
                ('pk', models.CompositePrimaryKey('lineage', 'digest', blank=True, editable=False, primary_key=True, serialize=False)),
                ('lineage', models.BigIntegerField()),
                ('digest', models.BinaryField()),
                ('codec', models.SmallIntegerField()),
                ('payload', models.BinaryField()),
                ('checksum', models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name='Event',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('xid', models.BigIntegerField(db_default=checkpoints.events.event.CurrentTransaction())),
                ('at', models.DateTimeField(db_default=checkpoints.events.event.StatementClock())),
                ('kind', models.CharField(max_length=60)),
                ('run_id', models.BigIntegerField(null=True)),
                ('team_id', models.BigIntegerField(null=True)),
                ('subject', models.CharField(max_length=120)),
                ('version', models.IntegerField(default=0)),
                ('actor', models.CharField(max_length=120)),
                ('actor_name', models.CharField(default='', max_length=150)),
                ('data', models.BinaryField(default=b'{}')),
                ('text_digest', models.BinaryField(null=True)),
            ],
            options={
                'permissions': [('view_audit', "May see the team's audit, verify the seals and export"), ('erase_text', 'May erase what people wrote from the audit')],
            },
        ),
        migrations.CreateModel(
            name='Gap',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.IntegerField()),
                ('first_seq', models.IntegerField()),
                ('last_seq', models.IntegerField()),
                ('parent_digest', models.BinaryField(null=True)),
                ('removed', models.BinaryField()),
                ('last_digest', models.BinaryField()),
                ('headers', models.BinaryField()),
                ('policy', models.CharField(max_length=120)),
                ('policy_version', models.IntegerField()),
                ('by', models.CharField(max_length=120)),
                ('by_name', models.CharField(blank=True, default='', max_length=150)),
                ('at', models.DateTimeField()),
                ('previous', models.BinaryField(null=True)),
                ('digest', models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name='Hold',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('checkpoint', models.UUIDField(null=True)),
                ('kind', models.CharField(choices=[('gate', 'Open gate'), ('fork', 'Fork'), ('name', 'Name'), ('effect', 'Unsettled effect'), ('legal', 'Legal hold')], max_length=8)),
                ('subject', models.CharField(max_length=120)),
                ('reason', models.CharField(max_length=300)),
                ('by', models.CharField(max_length=120)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('freed_at', models.DateTimeField(null=True)),
                ('freed_by', models.CharField(blank=True, default='', max_length=120)),
            ],
            options={
                'permissions': [('set_legal_hold', 'May set and free legal holds')],
            },
        ),
        migrations.CreateModel(
            name='Note',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('checkpoint', models.UUIDField(db_index=True)),
                ('text', models.BinaryField()),
                ('by', models.CharField(max_length=120)),
                ('at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name='Plan',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('agent', models.CharField(max_length=100)),
                ('version', models.CharField(max_length=40)),
                ('digest', models.BinaryField()),
                ('body', models.BinaryField()),
                ('external', models.BooleanField(db_default=False, default=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name='Prune',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('status', models.CharField(choices=[('looking', 'Looking'), ('shown', 'Dry run'), ('applying', 'Pruning'), ('done', 'Done'), ('stopped', 'Stopped'), ('dropped', 'Not applied')], default='looking', max_length=10)),
                ('at', models.DateTimeField()),
                ('by', models.CharField(max_length=120)),
                ('by_name', models.CharField(blank=True, default='', max_length=150)),
                ('nightly', models.BooleanField(db_default=False, default=False)),
                ('policies', models.JSONField(default=dict)),
                ('cursor', models.BigIntegerField(default=0)),
                ('upto', models.BigIntegerField(default=0)),
                ('runs', models.IntegerField(default=0)),
                ('checkpoints', models.BigIntegerField(default=0)),
                ('size', models.BigIntegerField(default=0)),
                ('removed', models.BigIntegerField(default=0)),
                ('freed', models.BigIntegerField(default=0)),
                ('digest', models.BinaryField(default=b'')),
                ('started_at', models.DateTimeField(null=True)),
                ('finished_at', models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name='PruneLine',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('agent', models.CharField(max_length=100)),
                ('checkpoints', models.IntegerField(default=0)),
                ('size', models.BigIntegerField(default=0)),
                ('ranges', models.JSONField(default=list)),
                ('kept', models.JSONField(default=dict)),
                ('held', models.JSONField(default=list)),
                ('removed', models.IntegerField(default=0)),
                ('freed', models.BigIntegerField(db_default=0, default=0)),
                ('stayed', models.JSONField(db_default=[], default=list)),
                ('done', models.BooleanField(default=False)),
                ('fault', models.CharField(blank=True, db_default='', default='', max_length=300)),
            ],
        ),
        migrations.CreateModel(
            name='RetentionPolicy',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('agent', models.CharField(blank=True, default='', help_text="The agent's name. Empty: all agents without a policy of their own.", max_length=100)),
                ('version', models.IntegerField()),
                ('keep_days', models.PositiveIntegerField(blank=True, help_text='In days. Empty: no age rule.', null=True, validators=[django.core.validators.MinValueValidator(1)], verbose_name='keep checkpoints newer than')),
                ('keep_last', models.PositiveIntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(1)])),
                ('keep_gates', models.BooleanField(default=True)),
                ('keep_decisions', models.BooleanField(default=True)),
                ('keep_finals', models.BooleanField(default=True)),
                ('enabled', models.BooleanField(default=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'verbose_name_plural': 'retention policies',
                'permissions': [('prune_checkpoints', 'May remove checkpoints by a retention policy')],
            },
        ),
        migrations.CreateModel(
            name='Run',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('lineage', models.BigIntegerField()),
                ('title', models.CharField(max_length=200)),
                ('status', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('waiting', 'Waiting'), ('completed', 'Completed'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='queued', max_length=12)),
                ('version', models.IntegerField(default=0)),
                ('head', models.UUIDField(null=True)),
                ('seq', models.IntegerField(default=0)),
                ('next_step', models.CharField(default='', max_length=100)),
                ('token', models.BigIntegerField(default=0)),
                ('lease_until', models.DateTimeField(null=True)),
                ('worker', models.CharField(blank=True, default='', max_length=120)),
                ('attempts', models.SmallIntegerField(default=0)),
                ('wake_at', models.DateTimeField(null=True)),
                ('reason', models.CharField(blank=True, default='', max_length=300)),
                ('frozen_at', models.DateTimeField(null=True)),
                ('started_as', models.CharField(max_length=120)),
                ('key', models.CharField(max_length=200, null=True, unique=True)),
                ('thread', models.CharField(blank=True, db_default='', default='', max_length=200)),
                ('forked_from', models.UUIDField(null=True)),
                ('environment', models.BinaryField(db_default=b'{}', default=b'{}')),
                ('halt', models.BooleanField(db_default=False, default=False)),
                ('settling', models.BooleanField(db_default=False, default=False)),
                ('ending', models.CharField(blank=True, db_default='', default='', max_length=12)),
                ('ending_reason', models.CharField(blank=True, db_default='', default='', max_length=300)),
                ('ending_by', models.CharField(blank=True, db_default='', default='', max_length=120)),
                ('ending_by_name', models.CharField(blank=True, db_default='', default='', max_length=150)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('finished_at', models.DateTimeField(null=True)),
            ],
            options={
                'permissions': [('start_run', 'May start runs'), ('rewind_run', 'May rewind, fork, edit and cancel runs')],
            },
        ),
        migrations.CreateModel(
            name='Seal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField()),
                ('first_xid', models.BigIntegerField()),
                ('first_id', models.BigIntegerField()),
                ('last_xid', models.BigIntegerField()),
                ('last_id', models.BigIntegerField()),
                ('count', models.IntegerField()),
                ('merkle_root', models.BinaryField()),
                ('marks', models.BinaryField()),
                ('heads', models.BinaryField()),
                ('previous', models.BinaryField(null=True)),
                ('digest', models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name='Verification',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('status', models.CharField(choices=[('underway', 'Under way'), ('passed', 'Passed'), ('failed', 'Failed')], default='underway', max_length=8)),
                ('by', models.CharField(max_length=120)),
                ('by_name', models.CharField(default='', max_length=150)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('busy_until', models.DateTimeField(null=True)),
                ('token', models.IntegerField(default=0)),
                ('seals', models.IntegerField(default=0)),
                ('of', models.IntegerField(default=0)),
                ('events', models.BigIntegerField(default=0)),
                ('faults', models.IntegerField(default=0)),
                ('findings', models.BinaryField(default=b'[]')),
                ('place', models.BinaryField(default=b'{}')),
            ],
        ),
        migrations.CreateModel(
            name='EventText',
            fields=[
                ('event', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, primary_key=True, related_name='words', serialize=False, to='checkpoints.event')),
                ('salt', models.BinaryField()),
                ('text', models.BinaryField()),
                ('terms', django.contrib.postgres.search.SearchVectorField(null=True)),
            ],
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(models.F('xid'), models.F('id'), name='event_cursor'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(models.F('xid'), models.F('id'), condition=models.Q(('kind', 'checkpoint.saved'), _negated=True), name='event_to_seal'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(models.F('run_id'), models.F('id'), condition=models.Q(('kind', 'checkpoint.saved'), _negated=True), name='event_of_run'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(models.F('at'), models.F('id'), condition=models.Q(('kind', 'checkpoint.saved'), _negated=True), name='event_by_time'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(models.F('kind'), models.F('at'), models.F('id'), condition=models.Q(('kind', 'checkpoint.saved'), _negated=True), name='event_by_kind'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(models.F('team_id'), models.F('at'), models.F('id'), condition=models.Q(('kind', 'checkpoint.saved'), _negated=True), name='event_by_team'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(models.F('actor'), models.F('at'), models.F('id'), condition=models.Q(('kind', 'checkpoint.saved'), _negated=True), name='event_by_actor'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(models.F('subject'), models.F('at'), models.F('id'), condition=models.Q(('kind', 'checkpoint.saved'), _negated=True), name='event_by_subject'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=django.contrib.postgres.indexes.GinIndex(checkpoints.events.event.EventTerms(), condition=models.Q(('kind', 'checkpoint.saved'), _negated=True), name='event_terms'),
        ),
        migrations.CreateModel(
            name='TechnicalHold',
            fields=[
            ],
            options={
                'proxy': True,
                'indexes': [],
                'constraints': [],
            },
            bases=('checkpoints.hold',),
        ),
        migrations.AddConstraint(
            model_name='plan',
            constraint=models.UniqueConstraint(fields=('agent', 'version', 'digest', 'external'), name='plan_is_stored_once'),
        ),
        migrations.AddField(
            model_name='checkpoint',
            name='plan',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='checkpoints.plan'),
        ),
        migrations.AddConstraint(
            model_name='prune',
            constraint=models.UniqueConstraint(condition=models.Q(('status', 'applying')), fields=('status',), name='one_prune_at_a_time'),
        ),
        migrations.AddField(
            model_name='pruneline',
            name='prune',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='lines', to='checkpoints.prune'),
        ),
        migrations.AddConstraint(
            model_name='retentionpolicy',
            constraint=models.UniqueConstraint(fields=('agent', 'version'), name='retention_version_is_written_once'),
        ),
        migrations.AddField(
            model_name='pruneline',
            name='policy',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='checkpoints.retentionpolicy'),
        ),
        migrations.AddField(
            model_name='run',
            name='plan',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='checkpoints.plan'),
        ),
        migrations.AddField(
            model_name='run',
            name='started_by',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='run',
            name='team',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='auth.group'),
        ),
        migrations.AddField(
            model_name='pruneline',
            name='run',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='checkpoints.run'),
        ),
        migrations.AddField(
            model_name='note',
            name='run',
            field=models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='notes', to='checkpoints.run'),
        ),
        migrations.AddField(
            model_name='hold',
            name='run',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='holds', to='checkpoints.run'),
        ),
        migrations.AddField(
            model_name='gap',
            name='run',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='gaps', to='checkpoints.run'),
        ),
        migrations.AddField(
            model_name='checkpoint',
            name='run',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='checkpoints', to='checkpoints.run'),
        ),
        migrations.AddIndex(
            model_name='seal',
            index=models.Index(models.F('last_xid'), models.F('last_id'), name='seal_by_place'),
        ),
        migrations.AddIndex(
            model_name='seal',
            index=models.Index(models.F('at'), name='seal_by_time'),
        ),
        migrations.AddConstraint(
            model_name='seal',
            constraint=models.UniqueConstraint(fields=('previous',), name='seals_form_one_chain', nulls_distinct=False),
        ),
        migrations.AddConstraint(
            model_name='verification',
            constraint=models.UniqueConstraint(condition=models.Q(('status', 'underway')), fields=('status',), name='one_verification_at_a_time'),
        ),
        migrations.AddIndex(
            model_name='eventtext',
            index=django.contrib.postgres.indexes.GinIndex(fields=['terms'], name='event_text_terms'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(models.F('id'), condition=models.Q(('status__in', ['queued', 'running'])), name='run_to_sweep'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('status__in', ['queued', 'running'])), fields=['plan', 'status', 'id'], name='run_to_sweep_of_plan'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(models.F('wake_at'), condition=models.Q(('status', 'waiting'), ('wake_at__isnull', False)), name='run_timer'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(fields=['team', '-id'], name='run_of_team'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(fields=['team', 'status', '-id'], name='run_of_team_status'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(fields=['plan', 'team', '-id'], name='run_of_plan'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(fields=['started_by', 'team', '-id'], name='run_of_starter'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(fields=['team', 'created_at'], name='run_of_team_day'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=django.contrib.postgres.indexes.GinIndex(django.contrib.postgres.search.SearchVector('title', config='simple'), name='run_title'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('thread', ''), _negated=True), fields=['team', 'thread', '-id'], name='run_of_thread'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(models.F('lineage'), condition=models.Q(('forked_from__isnull', False)), name='run_of_lineage'),
        ),
        migrations.AddIndex(
            model_name='pruneline',
            index=models.Index(models.F('prune'), models.F('run'), condition=models.Q(('done', False)), name='prune_line_to_do'),
        ),
        migrations.AddConstraint(
            model_name='pruneline',
            constraint=models.UniqueConstraint(fields=('prune', 'run'), name='prune_has_one_line_a_run'),
        ),
        migrations.AddConstraint(
            model_name='hold',
            constraint=models.UniqueConstraint(condition=models.Q(('freed_at__isnull', True)), fields=('run', 'kind', 'subject'), name='hold_is_made_once'),
        ),
        migrations.AddConstraint(
            model_name='gap',
            constraint=models.UniqueConstraint(fields=('run', 'number'), name='gaps_form_one_chain_a_run'),
        ),
        migrations.AddConstraint(
            model_name='gap',
            constraint=models.CheckConstraint(condition=models.Q(('first_seq__gte', 1), ('last_seq__gte', models.F('first_seq'))), name='gap_is_a_range'),
        ),
        migrations.AddConstraint(
            model_name='checkpoint',
            constraint=models.UniqueConstraint(fields=('run', 'seq'), name='checkpoint_seq_is_taken_once'),
        ),
        migrations.RunSQL(REFUSE_EVENT, "DROP FUNCTION public.checkpoints_refuse_event()"),
        migrations.RunSQL(REFUSED, migrations.RunSQL.noop),
        # Every checkpoint updates its run's row: room on the page keeps that a heap-only update.
        migrations.RunSQL(f"ALTER TABLE checkpoints_run SET (fillfactor = 50, {SOON})", migrations.RunSQL.noop),
        migrations.RunSQL(f"ALTER TABLE checkpoints_hold SET ({SOON})", migrations.RunSQL.noop),
        # Payloads and headers are already compressed: PostgreSQL's own attempt would cost time and save nothing.
        migrations.RunSQL("ALTER TABLE checkpoints_checkpoint ALTER payload SET STORAGE EXTERNAL", migrations.RunSQL.noop),
        migrations.RunSQL("ALTER TABLE checkpoints_chunk ALTER payload SET STORAGE EXTERNAL", migrations.RunSQL.noop),
        migrations.RunSQL("ALTER TABLE checkpoints_gap ALTER headers SET STORAGE EXTERNAL", migrations.RunSQL.noop),
        migrations.RunSQL(RIGHTS, "DROP VIEW public.checkpoints_right"),
    ]
