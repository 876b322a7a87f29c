"""The administration: a policy, its dry run, a hold that changes the dry run, the prune; and who may do what."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from checkpoints.audit.verify_runs import verify_run
from checkpoints.models import Event, Hold, Prune, RetentionPolicy, Run
from tests.agents.pages.test_run_page import text_of
from tests.checkpoints.retention.pruned_runs import ended, keep, looked, ordered, pruned, seqs
from tests.factories import unique
from tests.harness.signed_in_clients import confirmed

POLICIES, HOLDS, PRUNES = (f"/admin/checkpoints/{name}/" for name in ("retentionpolicy", "hold", "prune"))
WHOLE = (
    "add_retentionpolicy", "change_retentionpolicy", "view_retentionpolicy", "view_prune", "view_hold",
    "prune_checkpoints", "set_legal_hold", "view_event",
)  # fmt: skip


def staff(*names: str) -> User:
    user = User.objects.create_user(unique("sam"), first_name="Sam", last_name="Steward", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=names, content_type__app_label="checkpoints"))
    assert user.user_permissions.count() == len(names)
    return user


@pytest.fixture
def run() -> Run:
    return ended(60)


@pytest.fixture
def client() -> Client:
    return confirmed(staff(*WHOLE))


def dry_run(client: Client) -> tuple[str, str]:
    answer = client.post(f"{PRUNES}dry-runs/")
    assert answer.status_code == 302
    return answer["Location"], client.get(answer["Location"]).content.decode()


def seen(page: str) -> str:
    found = re.search(r'name="seen" value="(\w+)"', page)
    assert found, "nothing can be applied"
    return found[1]


def applications(address: str) -> str:
    return address.replace("change/", "applications/")


def test_a_policy_is_written_as_versions_and_told_of(run: Run, client: Client) -> None:
    agent = run.plan.agent
    said = {"agent": agent, "enabled": "on", "keep_last": "20", "keep_days": ""}
    assert client.post(f"{POLICIES}add/", said).status_code == 302
    one = RetentionPolicy.objects.current().get(agent=agent)
    assert client.post(f"{POLICIES}{one.pk}/change/", said | {"keep_last": "10"}).status_code == 302
    two = RetentionPolicy.objects.current().get(agent=agent)
    assert (one.version, one.keep_last, two.version, two.keep_last) == (1, 20, 2, 10)
    assert Event.objects.filter(kind="retention.changed", subject=f"retention:{agent}").count() == 2
    again = client.post(f"{POLICIES}add/", said)
    assert "already; change that one" in text_of(again.content.decode())
    unknown = client.post(f"{POLICIES}add/", said | {"agent": "nobody"})
    assert "There is no agent of that name" in text_of(unknown.content.decode())


def test_a_hold_changes_the_dry_run_and_the_prune_follows_it(run: Run, client: Client) -> None:
    keep(run, keep_last=20)
    first, page = dry_run(client)
    assert "1 to 41" in text_of(page)
    held = {"run_number": run.pk, "seq": "7", "reason": "Lawsuit 12/26 needs it"}
    assert client.post(f"{HOLDS}add/", held).status_code == 302
    assert "1 hold on these runs was made since" in text_of(client.get(first).content.decode())
    address, page = dry_run(client)
    text = text_of(page)
    assert "1 to 6, 8 to 41" in text
    assert "1 by legal hold: “Lawsuit 12/26 needs it” (Sam Steward)" in text
    listed = text_of(client.get(HOLDS, {"q": "Lawsuit"}).content.decode())
    assert "checkpoint 7" in listed
    assert "Sam Steward" in listed
    assert "user:" not in listed
    for freed, there in (("no", True), ("yes", False)):
        found = text_of(
            client.get(HOLDS, {"q": "Lawsuit 12/26", "freed": freed, "run__id__exact": str(run.pk)}).content.decode()
        )
        assert ("checkpoint 7" in found) == there
    assert "can no longer be viewed, compared, restored, rewound to or forked from" in text
    answer = client.post(applications(address), {"seen": seen(page)})
    assert answer["Location"] == address
    assert "40 checkpoints were deleted" in text_of(client.get(address).content.decode())
    assert seqs(run) == [7, *range(42, 62)]
    assert verify_run(run) == []
    [order] = Event.objects.filter(kind="retention.ordered", subject=f"prune:{address.split('/')[-3]}")
    assert order.actor_name == "Sam Steward"


def test_a_hold_on_the_whole_run_keeps_all_of_it_until_it_is_freed(run: Run, client: Client) -> None:
    keep(run, keep_last=20)
    client.post(f"{HOLDS}add/", {"run_number": run.pk, "reason": "All of it"})
    said = text_of(dry_run(client)[1])
    assert "Nothing. Holds keep all that the policies would delete." in said  # it said "kept by a policy or held"
    assert "By agent" not in said  # a table of zeros
    pruned()
    assert len(seqs(run)) == 61
    hold = Hold.objects.get(run=run, kind="legal")
    page = client.get(f"{HOLDS}{hold.pk}/change/").content.decode()
    assert "Free this hold" in page
    assert client.post(f"{HOLDS}{hold.pk}/releases/").status_code == 302
    assert client.post(f"{HOLDS}{hold.pk}/releases/").status_code == 302
    told = Event.objects.filter(run_id=run.pk, kind__startswith="retention.").order_by("id")
    assert list(told.values_list("kind", flat=True)) == ["retention.held", "retention.freed"]
    pruned()
    assert len(seqs(run)) == 20


def test_a_dry_run_that_the_policies_left_behind_or_of_another_digest_is_not_applied(run: Run, client: Client) -> None:
    keep(run, keep_last=20)
    address, page = dry_run(client)
    keep(run, keep_last=50)
    assert "was changed since this dry run" in text_of(client.get(address).content.decode())
    client.post(applications(address), {"seen": seen(page)})
    assert "A retention policy was changed" in text_of(client.get(address).content.decode())
    address, _ = dry_run(client)
    for wrong in ("", "zz", "00" * 32):
        client.post(applications(address), {"seen": wrong})
    assert len(seqs(run)) == 61


@pytest.mark.parametrize("lacks", ["prune_checkpoints", "set_legal_hold", "view_event"])
def test_each_needs_its_permission(run: Run, client: Client, lacks: str) -> None:
    keep(run, keep_last=20)
    address, page = dry_run(client)
    client.post(f"{HOLDS}add/", {"run_number": run.pk, "seq": "61", "reason": "x"})
    hold = Hold.objects.get(run=run, kind="legal")
    other = confirmed(staff(*(name for name in WHOLE if name != lacks)))
    answers = {
        "prune_checkpoints": lambda: other.post(applications(address), {"seen": seen(page)}),
        "set_legal_hold": lambda: other.post(f"{HOLDS}{hold.pk}/releases/"),
        "view_event": lambda: other.get(address),
    }
    assert answers[lacks]().status_code == 403
    if lacks == "set_legal_hold":
        assert other.post(f"{HOLDS}add/", {"run_number": run.pk, "reason": "x"}).status_code == 403
    if lacks in ("prune_checkpoints", "view_event"):
        assert other.post(f"{PRUNES}dry-runs/").status_code == 403
        assert other.post(applications(address), {"seen": seen(page)}).status_code == 403
    if lacks == "view_event":
        for hidden in (HOLDS, f"{HOLDS}{hold.pk}/change/", f"{HOLDS}add/", PRUNES, POLICIES, f"{POLICIES}add/"):
            assert other.get(hidden).status_code == 403, hidden
        assert other.post(f"{HOLDS}{hold.pk}/releases/").status_code == 403
    if lacks == "prune_checkpoints":
        assert "Dry run: what would be deleted" not in other.get(POLICIES).content.decode()
        assert 'name="seen"' not in other.get(address).content.decode()
    assert len(seqs(run)) == 61
    hold.refresh_from_db()
    assert hold.freed_at is None


def test_a_prune_under_way_is_stopped_from_its_page_by_whoever_may_prune(run: Run, client: Client) -> None:
    keep(run, keep_last=20)
    prune = ordered()
    page = f"{PRUNES}{prune.pk}/change/"
    assert 'value="Stop"' in client.get(page).content.decode()
    other = confirmed(staff(*(name for name in WHOLE if name != "prune_checkpoints")))
    assert other.post(f"{PRUNES}{prune.pk}/stops/").status_code == 403
    assert Prune.objects.under_way().count() == 1
    assert client.post(f"{PRUNES}{prune.pk}/stops/").status_code == 302
    assert "Stopped. 0 of 41 checkpoints were deleted by then" in text_of(client.get(page).content.decode())
    client.post(f"{PRUNES}{prune.pk}/stops/")
    assert "there is nothing to stop" in client.get(page).content.decode()


def test_only_what_is_posted_is_done_and_only_by_the_administration(run: Run, client: Client) -> None:
    keep(run, keep_last=20)
    prune = looked()
    for address in (f"{PRUNES}dry-runs/", f"{PRUNES}{prune.pk}/applications/", f"{PRUNES}{prune.pk}/stops/",
                    f"{HOLDS}1/releases/"):  # fmt: skip
        assert client.get(address).status_code == 405
        assert Client().post(address).status_code == 302
    assert Prune.objects.under_way().count() == 0
