from importlib import import_module

from django.db import migrations

TEAMS = import_module("approvals.migrations.0032_desk_lent")
COLLEAGUES = import_module("approvals.migrations.0036_lent_to_colleagues").COLLEAGUES
# Who decides for whom, now: whoever left the person's teams decides for them no more.
LENDING = f"""
CREATE OR REPLACE VIEW public.approvals_lending (delegate_id, person_id, teams, policies) AS
SELECT given.delegate_id, given.person_id, given.teams, given.policies
FROM approvals_delegation given
JOIN auth_user delegate ON delegate.id = given.delegate_id AND delegate.is_active
JOIN auth_user person ON person.id = given.person_id AND person.is_active
WHERE given.ended_at IS NULL AND given.starts_at <= statement_timestamp() AND given.ends_at > statement_timestamp()
{COLLEAGUES}
"""
# Whom a policy names lends what the policy gives them, whatever teams they are in.
NAMED = f"""
UNION ALL
SELECT policy.id, lent.delegate_id, lent.person_id
FROM approvals_lending lent
JOIN approvals_policy_people named ON named.user_id = lent.person_id
JOIN approvals_policy policy ON policy.id = named.policy_id AND {TEAMS.WITHIN}
"""


class Migration(migrations.Migration):
    dependencies = [("approvals", "0044_gate_ending")]
    accepted = {"unknown-effect": "a new view, and more rows of one that keeps its columns"}

    operations = [
        migrations.RunSQL(LENDING, "DROP VIEW IF EXISTS public.approvals_lending"),
        migrations.RunSQL(TEAMS.LENT_POLICIES + NAMED, TEAMS.LENT_POLICIES),
    ]
