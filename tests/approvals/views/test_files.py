"""Files at a gate: handed out to those who see the gate and name them, uploaded into an edit, kept until it ran."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import time
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import storages
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models.functions import Now
from django.test import override_settings

from approvals.errors import QuotaReached
from approvals.models import Draft, Gate, Upload
from checkpoints.actors import SYSTEM
from checkpoints.models import Plan
from checkpoints.retention import stray_artifacts
from checkpoints.values import artifacts, patch
from checkpoints.values.artifacts import MARK, Reference
from tests.factories import (
    ann,
    bob,
    change_gate,
    decide,
    eve,
    make_action,
    make_card,
    make_gate,
    make_plan,
    make_policy,
    make_run,
    make_spec,
    make_state,
    make_team,
    make_user,
)
from tests.factories.people import READER, REVIEWER
from tests.factories.runs import STEPS
from tests.harness.racing_threads import race
from tests.harness.signed_in_clients import form_of, post, signed_in

RECIPIENTS = {"type": "array", "items": {"type": "string"}}
UPLOAD = "args.refund/scan:upload"  # the button beside the file


def random() -> bytes:
    return os.urandom(24)


def with_order(order: dict[str, Any], *, policy: Any = None, pinned: Any = (), **schema: dict[str, Any]) -> Gate:
    """A gate that asks about an order, whose members have these schemas, and people may edit it."""
    policy = policy or make_policy(make_team())
    run = make_run(team=policy.team, plan=plan(**schema), state=make_state(order=order))
    action = make_action(id="refund", pointer="/order", pinned=pinned, tool="orders.file", edits=True)
    return make_gate(run=run, policy=policy, card=make_card(actions=[action]))


def with_file(content: bytes, *, team: Any = None, quorum: int = 1, name: str = "") -> Gate:
    """A gate whose order holds a file: `find_order` wrote it, and people may put another there."""
    scan = artifacts.keep(content, "image/png") | ({"name": name} if name else {})
    return with_order({"number": "A-1", "scan": scan}, policy=make_policy(team or make_team(), quorum=quorum))


def plan(**more: dict[str, Any]) -> Plan:
    """The usual plan, whose order has a scan and `more`, and whose gate lets people edit it."""
    steps = tuple(replace(step, edits=("order",)) if step.kind == "gate" else step for step in STEPS)
    spec = make_spec(steps=steps)
    order = {"type": "object", "properties": {"number": {"type": "string"}, "scan": {"type": "object"}, **more}}
    schema = {**spec.state_schema, "properties": {**spec.state_schema["properties"], "order": order}}
    return make_plan(replace(spec, state_schema=schema))


def of(gate: Gate) -> Reference:
    found = gate.standing().card.action("refund")
    assert found is not None
    return dict(found.arguments["scan"])


def address(gate: Gate, digest: str) -> str:
    return f"/gates/{gate.pk}/artifacts/{digest}/"


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def body(answer: Any) -> bytes:
    async def read() -> bytes:
        return b"".join([block async for block in answer.streaming_content])

    return asyncio.run(read())


def place(digest: str) -> Path:
    return Path(storages["artifacts"].path(f"{digest[:2]}/{digest}"))


def pruned(*digests: str) -> None:
    then = time.time() - 2 * 3600
    for each in digests:
        os.utime(place(each), (then, then))
    stray_artifacts.remove(grace=timedelta(hours=1))


def upload(content: bytes, name: str = "scan.png") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content, content_type="image/png")


class Breaking(SimpleUploadedFile):
    """A file whose reader is killed when it is read for the second time."""

    def seek(self, *args: Any) -> Any:
        self.passes = getattr(self, "passes", 0) + 1
        return super().seek(*args)

    def read(self, *args: Any) -> Any:
        if getattr(self, "passes", 0) > 1:
            raise KeyboardInterrupt
        return super().read(*args)


def edit(gate: Gate, content: bytes, **more: Any) -> dict[str, Any]:
    """An edit with another file; nobody can read a file on the page, so that it takes a tick."""
    return {**form_of(gate, "edit"), "args.refund!file/scan": upload(content), "second_look": "yes", **more}


def test_a_file_of_the_saved_state_is_handed_out_as_a_file_and_never_as_a_page() -> None:
    content = b"<script>alert(1)</script>" + random()
    gate = with_file(content, team=(team := make_team()), name="a\u202egnp.html\r\n;x.png")
    answer = signed_in(make_user("Rita Reader", team)).get(address(gate, sha(content)))
    assert (answer.status_code, body(answer)) == (200, content)
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["Content-Disposition"] == 'attachment; filename="agnp.html;x.png"'
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in answer["Content-Security-Policy"]
    assert "no-store" in answer["Cache-Control"]
    assert answer["Content-Length"] == str(len(content))
    assert signed_in(eve()).get(address(gate, sha(content))).status_code == 404


def test_what_the_gate_does_not_name_and_what_was_altered_is_not_handed_out() -> None:
    content = random()
    gate = with_file(content, team=(team := make_team()))
    client, other = signed_in(ann(team)), of(with_file(random()))
    for digest in (other[MARK], "0" * 64, "..%2F..%2Fetc"):
        assert client.get(address(gate, digest)).status_code == 404
    place(sha(content)).write_bytes(random())
    answer = client.get(address(gate, sha(content)))
    assert (answer.status_code, answer.streaming) == (409, False)
    place(sha(content)).unlink()
    assert client.get(address(gate, sha(content))).status_code == 404


def test_the_page_names_the_file_and_takes_another() -> None:
    content = random()
    gate = with_file(content, team=(team := make_team(may=READER)), name="old scan.png")
    page = signed_in(make_user("Ann Okafor", team, may=REVIEWER)).get(f"/gates/{gate.pk}/").content.decode()
    assert f'href="{address(gate, sha(content))}" download' in page
    assert "old scan.png" in page
    assert sha(content) in page
    assert 'type="file"' in page
    assert 'enctype="multipart/form-data"' in page
    reader = signed_in(make_user("Rita Reader", team)).get(f"/gates/{gate.pk}/").content.decode()
    assert address(gate, sha(content)) in reader
    assert 'type="file"' not in reader


def test_an_uploaded_file_takes_the_place_of_the_old_in_the_edit_and_in_the_state() -> None:
    old, new = random(), random()
    gate = with_file(old, team=(team := make_team()), quorum=2)
    answer = post(ann(team), gate, edit(gate, new))
    assert answer.status_code == 303, answer.content.decode()
    gate = Gate.objects.get(pk=gate.pk)
    stands = of(gate)
    assert stands == {MARK: sha(new), "size": len(new), "media_type": "image/png", "name": "scan.png"}
    assert artifacts.read(stands) == new
    after = patch.apply(gate.standing().state_patch, gate.saved.state)
    assert after["order"] == {"number": "A-1", "scan": stands}
    page = signed_in(bob(team)).get(f"/gates/{gate.pk}/").content.decode()
    row = page[page.index('<table class="diff"') : page.index("</table>")]
    assert all(said in row for said in (sha(old), sha(new), "scan.png", "24\xa0bytes"))
    assert (row.count("<tr data-kind"), body(signed_in(bob(team)).get(address(gate, sha(new))))) == (1, new)
    decide(gate, bob(team), "approve", second_look=True)
    assert Gate.objects.get(pk=gate.pk).outcome.kind == "edited"


@pytest.mark.parametrize("where", ["decisions", "impacts"])
def test_a_file_that_is_too_large_is_refused_in_plain_words(where: str) -> None:
    gate = with_file(random(), team=(team := make_team()))
    content = random() * 100
    with override_settings(HOLDPOINT_UPLOAD_LIMIT=2_000):
        answer = signed_in(ann(team)).post(f"/gates/{gate.pk}/{where}/", edit(gate, content, change=UPLOAD))
    assert answer.status_code == (422 if where == "decisions" else 200)
    assert "This file has 2.3\xa0KB; choose one of at most 2.0\xa0KB." in answer.content.decode()
    assert not place(sha(content)).exists()
    assert not Upload.objects.filter(gate=gate).exists()
    assert Gate.objects.get(pk=gate.pk).proposal == gate.proposal


def test_a_person_uploads_no_more_than_their_quota_and_is_told_what_to_do() -> None:
    """Whoever may decide one gate could fill the disk."""
    gate = with_file(random(), team=(team := make_team()))
    one, client = random() * 200, signed_in(reviewer := ann(team))
    with override_settings(HOLDPOINT_UPLOAD_QUOTA=9_000):
        client.post(f"/gates/{gate.pk}/forms/", edit(gate, one, change=UPLOAD))
        for where, status in (("decisions", 422), ("forms", 200)):
            answer = client.post(f"/gates/{gate.pk}/{where}/", edit(gate, random() * 200, change=UPLOAD))
            said = "take 4.7\xa0KB, and may take 8.8\xa0KB: decide some of those gates first"
            assert (answer.status_code, said in answer.content.decode()) == (status, True)
        assert list(Upload.objects.filter(user=reviewer).values_list("digest", "size")) == [(sha(one), 4800)]
        for uploads, content in ((client, one), (signed_in(bob(team)), random())):  # what is there already, and others
            answer = uploads.post(f"/gates/{gate.pk}/forms/", edit(gate, content, change=UPLOAD))
            assert "and may take" not in answer.content.decode()


def test_files_sent_at_once_take_no_more_than_the_quota(settings: Any) -> None:
    settings.HOLDPOINT_UPLOAD_QUOTA = 3 * 4096
    gate = with_file(random(), team=(team := make_team()))
    reviewer = ann(team)
    kept = race([partial(Upload.objects.keep, gate, upload(random()), by=reviewer) for _ in range(8)])
    assert sorted(type(each).__name__ for each in kept) == ["QuotaReached"] * 5 + ["dict"] * 3
    assert Upload.objects.filter(user=reviewer).count() == 3


def test_what_no_gate_and_no_run_needs_any_more_counts_no_more(settings: Any) -> None:
    settings.HOLDPOINT_UPLOAD_QUOTA = 5_000
    gates = [with_file(random()) for _ in range(2)]
    reviewer = ann(*(gate.team for gate in gates))
    Upload.objects.keep(gates[0], upload(random()), by=reviewer)
    with pytest.raises(QuotaReached):
        Upload.objects.keep(gates[1], upload(random()), by=reviewer)
    gates[0].run.cancel(by=SYSTEM)
    change_gate(gates[0], status="withdrawn", closed_at=Now())
    Upload.objects.keep(gates[1], upload(random()), by=reviewer)


def test_uploaded_for_the_form_it_is_kept_by_the_draft_and_sent_with_the_decision() -> None:
    new = random()
    gate = with_file(random(), team=(team := make_team()))
    reviewer = ann(team)
    client = signed_in(reviewer)
    part = client.post(
        f"/gates/{gate.pk}/forms/", edit(gate, new, change=UPLOAD), headers={"X-Fragment": "form"}
    ).content.decode()
    assert "scan.png, 24 bytes" in part
    reference = {**artifacts.keep(new, "image/png"), "name": "scan.png"}
    text = json.dumps(reference, sort_keys=True)
    assert text.replace('"', "&quot;") in part
    form = {**form_of(gate, "edit"), "args.refund/scan": text, "second_look": "yes"}
    client.post(f"/gates/{gate.pk}/drafts/", form, HTTP_ACCEPT="application/json")
    assert Draft.objects.get(gate=gate).fields["args.refund/scan"] == text
    pruned(sha(new))
    assert text.replace('"', "&quot;") in client.get(f"/gates/{gate.pk}/").content.decode()
    assert post(reviewer, gate, form).status_code == 303
    gate = Gate.objects.get(pk=gate.pk)
    assert gate.outcome.kind == "edited"
    pruned(sha(new))
    assert artifacts.read(of(gate)) == new, "the run has not written it into its state yet"


def test_what_was_uploaded_and_came_to_nothing_goes() -> None:
    new = random()
    gate = with_file(random(), team=(team := make_team()))
    client = signed_in(ann(team))
    client.post(f"/gates/{gate.pk}/forms/", edit(gate, new, change=UPLOAD))
    pruned(sha(new))
    assert place(sha(new)).exists()
    type(gate.run).objects.filter(pk=gate.run_id).update(status="failed")
    change_gate(gate, status="withdrawn", closed_at=gate.opened_at)
    pruned(sha(new))
    assert not place(sha(new)).exists()


@pytest.mark.parametrize("by", ["form", "override"])
def test_an_edit_brings_in_no_file_that_was_not_uploaded_at_this_gate(by: str) -> None:
    gate = with_file(random(), team=(team := make_team()))
    foreign = artifacts.keep(random(), "image/png")
    value = {"number": "A-1", "scan": foreign}
    form = {
        "form": {**form_of(gate, "edit"), "args.refund/scan": json.dumps(foreign)},
        "override": {**form_of(gate, "reject"), "then": "override", "override.refund": json.dumps(value)},
    }[by]
    answer = post(ann(team), gate, form)
    assert answer.status_code == 422
    assert "This file was not uploaded here" in answer.content.decode()
    gate = Gate.objects.get(pk=gate.pk)
    assert (gate.status, gate.proposal) == ("open", 1)


def test_nothing_is_kept_of_somebody_who_may_not_decide() -> None:
    gate = with_file(random(), team=(team := make_team(may=READER)))
    new = random()
    reader = make_user("Rita Reader", team)
    for where in ("decisions", "forms", "impacts", "drafts"):
        assert signed_in(reader).post(f"/gates/{gate.pk}/{where}/", edit(gate, new)).status_code in (403, 422)
    assert not place(sha(new)).exists()
    assert not Upload.objects.filter(gate=gate).exists()


def test_whoever_dies_before_the_content_is_kept_leaves_nothing_that_names_it() -> None:
    gate, new = with_file(random(), team=(team := make_team())), random()
    with pytest.raises(KeyboardInterrupt):
        Upload.objects.keep(gate, Breaking("scan.png", new), by=ann(team))
    assert Upload.objects.filter(gate=gate, digest=sha(new)).exists()
    form = {**form_of(gate, "edit"), "args.refund/scan": json.dumps({MARK: sha(new), "size": 24, "media_type": ""})}
    answer = post(ann(team), gate, form)
    assert answer.status_code == 422
    assert "This file is not kept any more; choose it again." in answer.content.decode()


def test_what_is_said_of_a_file_is_true_and_another_hides_in_none() -> None:
    """A file that was there already could be given another size, or have a stranger's file put into it, unlooked at."""
    gate = with_file(random(), team=(team := make_team()))
    for lie in ({"size": 1}, {"more": {MARK: "0" * 64, "size": 24}}):
        form = {**form_of(gate, "edit"), "args.refund/scan": json.dumps({**of(gate), **lie})}
        assert post(ann(team), gate, form).status_code == 422
    assert Gate.objects.get(pk=gate.pk).status == "open"
