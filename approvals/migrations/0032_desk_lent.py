from django.db import migrations, models

# What people who are away have lent to others, now. Each view begins with its few delegations, whatever the rest holds.
LENT = """
CREATE OR REPLACE VIEW public.approvals_lent (delegate_id, person_id, team_id, teams, policies) AS
SELECT given.delegate_id, given.person_id, may.team_id, given.teams, given.policies
FROM approvals_delegation given
JOIN auth_user delegate ON delegate.id = given.delegate_id AND delegate.is_active
JOIN checkpoints_right may
  ON may.user_id = given.person_id AND may.app = 'approvals' AND may.codename = 'decide_gate'
WHERE given.ended_at IS NULL AND given.starts_at <= statement_timestamp() AND given.ends_at > statement_timestamp()
"""
WITHIN = """
(lent.teams = '{}' OR policy.team_id = ANY(lent.teams)) AND (lent.policies = '{}' OR policy.name = ANY(lent.policies))
"""
LENT_POLICIES = f"""
CREATE OR REPLACE VIEW public.approvals_lentpolicy (policy_id, delegate_id, person_id) AS
SELECT policy.id, lent.delegate_id, lent.person_id
FROM approvals_lent lent
JOIN approvals_reviewingteam reviewing ON reviewing.team_id = lent.team_id
JOIN approvals_policy policy ON policy.id = reviewing.policy_id AND {WITHIN}
"""
LENT_TEAMS = f"""
CREATE OR REPLACE VIEW public.approvals_lentteam (added_id, delegate_id, person_id) AS
SELECT added.id, lent.delegate_id, lent.person_id
FROM approvals_lent lent
JOIN approvals_addedteam added ON added.team_id = lent.team_id
JOIN approvals_gate gate ON gate.id = added.gate_id
JOIN approvals_policy policy ON policy.id = gate.policy_id AND {WITHIN}
"""


class Migration(migrations.Migration):
    dependencies = [("approvals", "0031_desk_decision"), ("checkpoints", "0001_initial")]
    accepted = {"unknown-effect": "it only adds views, which the running release does not read"}

    operations = [
        migrations.CreateModel(
            name="LentPolicy",
            fields=[("pk", models.CompositePrimaryKey("policy_id", "delegate_id", "person_id", blank=True, editable=False, primary_key=True, serialize=False))],
            options={"managed": False, "default_permissions": ()},
        ),
        migrations.CreateModel(
            name="LentTeam",
            fields=[("pk", models.CompositePrimaryKey("added_id", "delegate_id", "person_id", blank=True, editable=False, primary_key=True, serialize=False))],
            options={"managed": False, "default_permissions": ()},
        ),
        migrations.RunSQL(LENT, "DROP VIEW IF EXISTS public.approvals_lent"),
        migrations.RunSQL(LENT_POLICIES, "DROP VIEW IF EXISTS public.approvals_lentpolicy"),
        migrations.RunSQL(LENT_TEAMS, "DROP VIEW IF EXISTS public.approvals_lentteam"),
    ]
