from importlib import import_module

from django.db import migrations

WITHIN = import_module("approvals.migrations.0032_desk_lent").WITHIN
ASKED = """
CROSS JOIN LATERAL (
  SELECT reviewing.team_id FROM approvals_reviewing reviewing WHERE reviewing.policy_id = gate.policy_id
  UNION SELECT added.team_id FROM approvals_addedteam added WHERE added.gate_id = gate.id) asked
"""
# In their own name, by a team or by name; then what somebody who is away lends them, of what that person has so.
OWN = f"""
  RETURN QUERY SELECT gate.id, may.user_id, may.user_id, may.team_id
  FROM approvals_gate gate {ASKED}
  JOIN checkpoints_right may ON may.team_id = asked.team_id AND may.app = 'approvals' AND may.codename = 'decide_gate'
  WHERE gate.id = ANY(gates) {{may}};
  RETURN QUERY SELECT gate.id, one.id, one.id, NULL::int
  FROM approvals_gate gate
  JOIN approvals_policy_people named ON named.policy_id = gate.policy_id
  JOIN auth_user one ON one.id = named.user_id AND one.is_active
  WHERE gate.id = ANY(gates) {{one}};
"""
LENT = f"""
  RETURN QUERY SELECT gate.id, lent.delegate_id, lent.person_id, lent.team_id
  FROM approvals_gate gate {ASKED}
  JOIN approvals_policy policy ON policy.id = gate.policy_id
  JOIN approvals_lent lent ON lent.team_id = asked.team_id AND {WITHIN}
  WHERE gate.id = ANY(gates) AND (people IS NULL OR lent.delegate_id = ANY(people));
  RETURN QUERY SELECT gate.id, lent.delegate_id, lent.person_id, NULL::int
  FROM approvals_gate gate
  JOIN approvals_policy policy ON policy.id = gate.policy_id
  JOIN approvals_policy_people named ON named.policy_id = gate.policy_id
  JOIN approvals_lending lent ON lent.person_id = named.user_id AND {WITHIN}
  WHERE gate.id = ANY(gates) AND (people IS NULL OR lent.delegate_id = ANY(people));
"""
# Who has authority over these gates, by which team (none where the policy names the person), and whose authority that
# is: everybody, or of these people. A function, since it keeps its plans: PostgreSQL would plan a view for longer than
# it reads it, and hardly anybody is away.
ACCESS = f"""
CREATE FUNCTION public.approvals_gate_access(gates bigint[], people bigint[] DEFAULT NULL)
RETURNS TABLE (gate_id bigint, user_id int, person_id int, team_id int)
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
  IF people IS NULL THEN {OWN.format(may="", one="")}
  ELSE {OWN.format(may="AND may.user_id = ANY(people)", one="AND one.id = ANY(people)")}
  END IF;
  IF EXISTS (
    SELECT FROM approvals_delegation given WHERE given.ended_at IS NULL AND given.delegate_id IS NOT NULL
      AND given.starts_at <= statement_timestamp() AND given.ends_at > statement_timestamp()
      AND (people IS NULL OR given.delegate_id = ANY(people))) THEN {LENT}
  END IF;
END $$
"""


class Migration(migrations.Migration):
    dependencies = [("approvals", "0046_teams_that_decide")]
    accepted = {"unknown-effect": "it only adds a function, which the running release does not call"}

    operations = [migrations.RunSQL(ACCESS, "DROP FUNCTION public.approvals_gate_access(bigint[], bigint[])")]
