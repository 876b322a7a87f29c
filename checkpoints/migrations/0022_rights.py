from django.conf import settings
from django.db import migrations, models

# Who has which permission in which team: active members, by the team's permissions or by their own. One SELECT without
# a UNION: the planner puts it into the statement that asks, and takes the indexes from whichever side is known.
VIEW = """
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
    accepted = {'unknown-effect': 'a view that nobody reads yet, over tables that it does not lock against readers or writers'}

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        ('contenttypes', '0002_remove_content_type_name'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('checkpoints', '0021_due_runs_by_plan'),
    ]

    operations = [
        migrations.RunSQL(VIEW, 'DROP VIEW public.checkpoints_right'),
        migrations.CreateModel(
            name='Right',
            fields=[
                ('pk', models.CompositePrimaryKey('team_id', 'user_id', 'app', 'codename', blank=True, editable=False, primary_key=True, serialize=False)),
                ('team_id', models.IntegerField()),
                ('user_id', models.IntegerField()),
                ('app', models.CharField(max_length=100)),
                ('codename', models.CharField(max_length=100)),
            ],
            options={'managed': False, 'default_permissions': ()},
        ),
    ]
