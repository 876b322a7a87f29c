import django.db.models.deletion
from django.db import migrations, models

# Whose people decide under a policy: those of the groups that it names, or else its own team's.
VIEW = """
CREATE VIEW public.approvals_reviewingteam (policy_id, team_id) AS
SELECT policy.id, coalesce(named.group_id, policy.team_id)
FROM approvals_policy policy LEFT JOIN approvals_policy_groups named ON named.policy_id = policy.id
"""


class Migration(migrations.Migration):
    accepted = {'unknown-effect': 'a view that nobody reads yet, over tables that it does not lock against readers or writers'}

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        ('approvals', '0021_autovacuum'),
    ]

    operations = [
        migrations.RunSQL(VIEW, 'DROP VIEW public.approvals_reviewingteam'),
        migrations.CreateModel(
            name='ReviewingTeam',
            fields=[
                ('pk', models.CompositePrimaryKey('policy_id', 'team_id', blank=True, editable=False, primary_key=True, serialize=False)),
                ('policy', models.ForeignKey(on_delete=django.db.models.deletion.DO_NOTHING, related_name='reviewing', to='approvals.policy')),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='auth.group')),
            ],
            options={'managed': False, 'default_permissions': ()},
        ),
    ]
