"""The gate that follows a decision is the next one of the list that the reader came from."""

from __future__ import annotations

from approvals.models import Gate
from tests.factories import ann, bob, make_card, make_gate, make_policy, make_team
from tests.harness.signed_in_clients import form_of, signed_in


def test_it_follows_in_the_order_and_with_the_filters_of_the_list_and_then_the_rest() -> None:
    team = make_team()
    policy = make_policy(team)
    gates = {
        paid: make_gate(policy=policy, card=make_card(title=f"Pay {paid}", amount=paid, risk=risk))
        for paid, risk in (("€5.00", "low"), ("€90.00", "low"), ("€20.00", "low"), ("€70.00", "high"))
    }
    client = signed_in(ann(team))
    client.get("/?queue=mine&sort=amount&risk=low")
    passed, here = [], gates["€90.00"].pk
    for _ in range(4):
        passed.append(here)
        form = {**form_of(Gate.objects.get(pk=here)), "follows": "yes", "follow": "yes"}
        there = client.post(f"/gates/{here}/decisions/", form)["Location"]
        here = int(there.split("/")[2])
    assert passed == [gates[paid].pk for paid in ("€90.00", "€20.00", "€5.00", "€70.00")]


def test_a_gates_place_and_neighbours_are_those_of_that_list() -> None:
    team = make_team()
    policy = make_policy(team)
    first, last = (make_gate(policy=policy, card=make_card(title=f"Pay {n}", amount=f"€{n}.00")) for n in (5, 9))
    client = signed_in(ann(team))
    assert f'href="/gates/{last.pk}/"' in client.get(f"/gates/{first.pk}/").content.decode()
    client.get("/?queue=mine&sort=amount")
    page = client.get(f"/gates/{last.pk}/").content.decode()
    assert 'data-hotkey="j"' in page
    assert 'data-hotkey="k"' not in page
    client.get("/?queue=mine")
    assert 'data-hotkey="k"' in client.get(f"/gates/{last.pk}/").content.decode()


def test_junk_in_the_cookie_is_the_readers_own_queue() -> None:
    team = make_team()
    first, second = (make_gate(team=team) for _ in range(2))
    client = signed_in(reader := ann(team))
    client.cookies["holdpoint_list"] = f"sort=%00nothing&queue=<b>&after=1&risk=extreme&q=%00&reader={reader.pk}"
    form = {**form_of(first), "follows": "yes", "follow": "yes"}
    assert client.post(f"/gates/{first.pk}/decisions/", form)["Location"].startswith(f"/gates/{second.pk}/")


def test_the_list_of_whoever_was_at_the_browser_before_is_nobody_elses() -> None:
    """Ann's search stood in the field of Bob, who had signed in after her, and chose which gate came next for him."""
    team = make_team()
    gates = [make_gate(team=team, card=make_card(title=title)) for title in ("Pay Marit", "Pay Olav", "Pay Nils")]
    before = signed_in(ann(team))
    before.get("/?queue=mine&q=Nils")
    client = signed_in(bob(team))
    client.cookies["holdpoint_list"] = before.cookies["holdpoint_list"].value
    answer = client.post(f"/gates/{gates[0].pk}/snoozes/", {"for": "hour"})
    assert "Nils" not in answer["Location"]
    form = {**form_of(gates[0]), "follows": "yes", "follow": "yes"}
    assert client.post(f"/gates/{gates[0].pk}/decisions/", form)["Location"].startswith(f"/gates/{gates[1].pk}/")
