"""A question to a program elsewhere: it reads it over the API, hears of it by webhook, and answers it once."""

from __future__ import annotations

import pytest

from approvals.gates import questions, remarks, thread
from approvals.models import Message
from checkpoints.models import Event
from checkpoints.values.canonical_json import decode_canonical
from tests.agents.remote.outside_program import Program
from tests.approvals.webhooks.made_webhooks import make_webhook
from tests.factories import ann, bob, decide
from tests.harness.signed_in_clients import signed_in


def test_a_program_answers_a_question_once_and_people_read_it() -> None:
    program = Program()
    gate = program.to_gate()
    make_webhook(team=gate.team)
    browser = signed_in(ann(gate.team))
    assert "The question goes to" in browser.get(f"/gates/{gate.pk}/").content.decode()
    for key in ("k1", "k2"):
        browser.post(f"/gates/{gate.pk}/questions/", {"text": f"Why {key}?", "key": key})
    first, second = program.client.get(f"/api/gates/{gate.pk}/questions").json()["items"]
    assert (first["text"], first["by"], first["status"], first["answer"]) == ("Why k1?", "Ann Okafor", "asked", None)
    told = [
        decode_canonical(bytes(each.body or b""))
        for each in Message.objects.filter(kind="gate.question").order_by("pk")
    ]
    assert [each["data"]["question"] for each in told][-2:] == [first["id"], second["id"]]
    assert "Why k1?" not in str(told)  # a wrong address gets no words
    place, said = f"gates/{gate.pk}/answers", {"question": first["id"], "text": "Because of <b>it</b>"}
    made = program.post(place, said, key="a")
    assert (made.status_code, made.json()["answer"]) == (201, "Because of <b>it</b>")
    assert program.post(place, said, key="a").status_code == 201  # the same again
    assert program.post(place, {**said, "text": "Or not"}).status_code == 409
    other = Program()
    assert other.post(f"gates/{other.to_gate().pk}/answers", said).status_code == 404, "it is no question of this gate"
    assert program.post(place, {"question": second["id"], "text": "No", "failed": True}).status_code == 201
    page = browser.get(f"/gates/{gate.pk}/").content.decode()
    assert "Because of &lt;b&gt;it" in page
    assert "could not answer" in page
    event = Event.objects.get(subject=gate.subject, kind="gate.answered")
    assert event.actor == f"agent:{program.agent}"
    decide(gate, ann(gate.team))


def test_a_question_is_read_and_answered_however_much_was_said_since(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread, "SHOWN", 3)
    program = Program()
    gate = program.to_gate()
    asked = questions.ask(gate, by=ann(gate.team), text="Why seven?", key="k1")
    for number in range(2 * thread.SHOWN + 1):
        remarks.remark(gate, by=bob(gate.team), text=f"And {number}?", key=f"r{number}")
    [found] = program.client.get(f"/api/gates/{gate.pk}/questions").json()["items"]
    assert (found["id"], found["text"]) == (asked.pk, "Why seven?")
    made = program.post(f"gates/{gate.pk}/answers", {"question": asked.pk, "text": "It says so."})
    assert (made.status_code, made.json()["answer"]) == (201, "It says so.")
