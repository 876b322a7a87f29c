from importlib import import_module

from django.db import migrations

TEAMS = import_module("approvals.migrations.0032_desk_lent").LENT_POLICIES
NAMED = import_module("approvals.migrations.0045_lent_by_name").NAMED
# Whose people decide under a policy: those of the groups that it names; where it names nobody, its own team's. The view
# before this also let the own team in where people alone are named, and a running release computes digests by it.
REVIEWING = """
CREATE VIEW public.approvals_reviewing (policy_id, team_id) AS
SELECT policy.id, coalesce(named.group_id, policy.team_id)
FROM approvals_policy policy LEFT JOIN approvals_policy_groups named ON named.policy_id = policy.id
WHERE named.group_id IS NOT NULL
  OR NOT EXISTS (SELECT FROM approvals_policy_people people WHERE people.policy_id = policy.id)
"""
LENT = TEAMS.replace("approvals_reviewingteam", "approvals_reviewing")


class Migration(migrations.Migration):
    dependencies = [("approvals", "0045_lent_by_name")]
    accepted = {"unknown-effect": "a new view, and fewer rows of one that keeps its columns"}

    operations = [
        migrations.RunSQL(REVIEWING, "DROP VIEW IF EXISTS public.approvals_reviewing"),
        migrations.RunSQL(LENT + NAMED, TEAMS + NAMED),
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.AlterModelTable("reviewingteam", "approvals_reviewing")]
        ),
    ]
