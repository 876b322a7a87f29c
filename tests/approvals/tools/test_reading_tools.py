"""Programs read which tools people registered for their team."""

from __future__ import annotations

from tests.agents.remote.outside_program import Program
from tests.factories import MEMBER, make_team

from .registered_tools import make_tool


def test_a_program_reads_the_tools_of_its_team_in_the_version_that_counts() -> None:
    program = Program()
    make_tool(program.team)
    make_tool(program.team, title="Send money")
    make_tool(program.team, name="gone", used=False)
    make_tool(make_team(may=MEMBER))
    told = program.ok(program.client.get("/api/tools"))
    [tool] = told["items"]
    assert told["next"] is None
    assert (tool["name"], tool["version"], tool["title"], tool["risk"]) == ("bank.wire", 2, "Send money", "high")
    assert (tool["team"], tool["pinned"]) == (program.team.name, ["/amount", "/to"])
    assert tool["arguments"]["properties"]["to"]["title"] == "Recipient"
    assert tool["arguments"]["additionalProperties"] is False


def test_a_long_list_goes_on_where_it_ended() -> None:
    program = Program()
    for name in ("a", "b", "c"):
        make_tool(program.team, name=name)
    first = program.ok(program.client.get("/api/tools?limit=2"))
    rest = program.ok(program.client.get(f"/api/tools?limit=2&cursor={first['next']}"))
    assert [each["name"] for each in (*first["items"], *rest["items"])] == ["a", "b", "c"]
    assert rest["next"] is None


def test_what_a_gate_says_of_itself_that_no_argument_bears_out_is_told() -> None:
    from .lying_program import lied

    program = Program()
    gate = lied(program)
    told = program.ok(program.client.get(f"/api/gates/{gate.pk}"))
    assert told["outside"] is True
    assert "“€10.00” in the title is not what runs: amount is 99999.00. It appears only in ref." in told["unsupported"]
