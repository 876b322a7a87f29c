"""What is done is what people approved, text for text: large integers, 1 and 1.0, secrets, and what was altered."""

from __future__ import annotations

import json

import pytest

from agents.models import Effect
from approvals.models import Gate
from tests.clients.typescript.program import Program, Thrown
from tests.clients.world import WIRE, World

HUGE = 2**70 + 1
ASKS = """
return hp.approve("pay", %s, { pinned: ["account"], ...%s }, (call) => {
  const { account, rate } = call.arguments;
  write("call", { kinds: [typeof account, typeof rate], text: call.text, account, rate });
  return call.arguments;
});
"""


def test_no_digit_is_lost_on_the_way_to_people_and_back(world: World, program: Program) -> None:
    told = program(world, ASKS % (f'{{ account: {HUGE}n, rate: new Exact("1.0"), small: 9007199254740991 }}', "{}"))
    gate = world.gate()
    asked = gate.asked.actions[0].arguments
    assert (asked, type(asked["rate"])) == ({"account": HUGE, "rate": 1.0, "small": 2**53 - 1}, float)
    edited = {"account": HUGE + 2, "rate": 2.0, "small": 2**53 - 1}
    world.decides("edit", arguments={"pay": edited})
    assert told.result()["account"] == HUGE + 2
    call = told.wrote("call")
    assert call["kinds"] == ["bigint", "number"]
    assert call["text"] == f'{{"account":{HUGE + 2},"rate":2.0,"small":9007199254740991}}'
    assert Effect.objects.get(run=gate.run_id).returned["pay_result"]["account"] == HUGE + 2


def test_what_json_cannot_hold_is_refused_before_anybody_is_asked(world: World, program: Program) -> None:
    asks = 'hp.approve("pay", { rate }, {}, () => 1).catch((error) => `${error.name}: ${error.message}`)'
    told = program(world, f"return Promise.all([NaN, Infinity, -Infinity].map((rate) => {asks}));").result()
    numbers = ["NaN", "Infinity", "-Infinity"]
    assert told == [f"TypeError: rate is {number}, which JSON cannot hold." for number in numbers]
    assert not Gate.objects.filter(team=world.team).exists()


def test_a_secret_is_handed_out_to_the_program_and_compared_where_it_is_none(world: World, program: Program) -> None:
    properties = {"account": {"type": "string", "writeOnly": True}, "rate": {"type": "integer"}}
    schema = json.dumps({"schema": {"type": "object", "properties": properties}})
    told = program(world, ASKS % ('{ account: "DE02", rate: 1 }', schema))
    world.decides()
    assert told.result() == {"account": "DE02", "rate": 1}


def test_a_text_is_read_and_written_without_loss(world: World, program: Program) -> None:
    texts = ["{}", "[]", '"a\\"b"', "12345678901234567890", "-0.5", '{"a":[1,{"b":"]}"}],"c":null}']
    again = "(text) => holdpoint.stringify(holdpoint.parse(text))"
    assert program(world, f"return {json.dumps(texts)}.map({again});").result() == texts


ALTERED = """
const real = globalThis.fetch;
globalThis.fetch = async (address, more) => {
  const answer = await real(address, more);
  if (!RegExp(%s).test(address)) return answer;
  return new Response((await answer.text()).replaceAll(%s, %s), answer);
};
return hp.approve("wire", WIRE, {}, () => write("did", 1));
"""


def test_an_edit_that_the_outcome_does_not_tell_is_not_done(web: str, program: Program) -> None:
    """What a key had found was not compared with what the program asks: the server's binding stood alone."""
    world, was = World(web), '"edits":{"wire":['
    told = program(world, ALTERED % (json.dumps("/outcome"), json.dumps(was), json.dumps('"edits":{"other":[')))
    gate = world.decides("edit", arguments={"wire": {**WIRE, "amount": "100.00"}})
    with pytest.raises(Thrown, match=f"Altered: People were asked at gate {gate.pk} about other arguments of wire"):
        told.result()
    assert "did" not in told.service.log
    assert Effect.objects.get(run=gate.run_id).status == "failed"


def test_items_and_members_that_people_added_and_took_out_are_theirs(world: World, program: Program) -> None:
    asks = 'return hp.approve("mail", { to: ["a", "b", "c"], cc: { x: 1, "y/z": 2 } }, {}, (call) => call.arguments);'
    told = program(world, asks)
    edited = {"to": ["b", "c", "d"], "cc": {"x": 3, "y/z": 4}}
    world.decides("edit", arguments={"mail": edited})
    assert told.result() == edited


def test_a_float_that_people_typed_is_theirs_and_what_the_caller_changes_meanwhile_is_not_asked(
    world: World, program: Program
) -> None:
    """1e+20 was written again as an integer, which differs; and the object that the caller holds was compared."""
    asks = "const args = { rate: 1.5, note: 'a' }; const told = hp.approve('set', args, {}, (call) => call.text);"
    told = program(world, f"{asks} setTimeout(() => {{ args.note = 'b'; }}, 0); return told;")
    world.decides("edit", arguments={"set": {"rate": 1e20, "note": "a"}})
    assert told.result() == '{"note":"a","rate":1e+20}'


@pytest.mark.parametrize(
    ("place", "was", "becomes"),
    [
        ("/effects$", '"120.00"', '"920.00"'),  # what the program gets
        ("/gates/[0-9]+$", '"120.00"', '"920.00"'),  # the card
        ("/gates/[0-9]+$", '"seen":"', '"seen":"0'),  # what people decided on
    ],
)
def test_what_differs_from_what_people_approved_is_not_done(
    world: World, program: Program, place: str, was: str, becomes: str
) -> None:
    told = program(world, ALTERED % (json.dumps(place), json.dumps(was), json.dumps(becomes)))
    gate = world.decides()
    with pytest.raises(Thrown, match="Altered: The arguments of wire are not those that people approved at gate"):
        told.result()
    assert "did" not in told.service.log
    assert Effect.objects.get(run=gate.run_id).status == "failed"
