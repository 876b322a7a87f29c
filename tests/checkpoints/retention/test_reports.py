"""After a prune its report agrees with itself: shown, deleted, kept and freed add up, and each that stayed says why."""

from __future__ import annotations

from typing import Any

from bs4 import BeautifulSoup
from django.db.models import Sum
from django.template.defaultfilters import filesizeformat
from django.test import Client

from checkpoints.actors import SYSTEM
from checkpoints.models import Prune, PruneLine, RetentionPolicy
from checkpoints.retention import prune_report, prunes
from checkpoints.runs import holds
from tests.agents.views.run_page.test_run_page import text_of
from tests.factories import make_user
from tests.harness.signed_in_clients import signed_in

from .pruned_runs import ended, grown, keep, looked, more, seqs


def ordered(prune: Prune) -> Prune:
    prunes.order(prune, seen=bytes(prune.digest), by=SYSTEM)
    return prune


def reported(prune: Prune) -> tuple[str, Client]:
    client = signed_in(make_user("Root", superuser=True))
    return client.get(f"/admin/checkpoints/prune/{prune.pk}/change/").content.decode(), client


def table(page: str) -> list[list[str]]:
    """The rows of the table by agent, as text."""
    found = BeautifulSoup(page, "html.parser").find("h2", string="By agent")
    assert found is not None
    rows: Any = found.find_next("table")
    return [[cell.get_text(strip=True) for cell in row.select("th, td")] for row in rows.select("tbody tr")]


def agrees(prune: Prune) -> None:
    """Everything that the prune's rows say adds up."""
    prune.refresh_from_db()
    for line in prune.lines.all():
        assert line.checkpoints == line.removed + sum(count for _, _, count in line.stayed), line
    sums = prune.lines.aggregate(shown=Sum("checkpoints"), removed=Sum("removed"), freed=Sum("freed"))
    assert (sums["shown"], sums["removed"]) == (prune.checkpoints, prune.removed)
    assert sums["freed"] + prune_report.files(prune) == prune.freed
    assert sum(each.checkpoints for each in prune_report.kept_after_all(prune)) == prune.kept_after_all


def test_what_a_new_hold_kept_is_in_every_number_and_named() -> None:
    """It said "5 stayed after all: they were held, moved or used", and below that nothing was held."""
    run, other = ended(60), ended(60)
    keep(run, keep_last=20), keep(other, keep_last=20)
    prune = looked()
    for seq in (7, 8, 9):
        holds.hold(run, seq, "Lawsuit 12/26", by=SYSTEM)
    assert prunes.apply(ordered(prune))
    agrees(prune)
    page, _ = reported(prune)
    said = text_of(page)
    assert said.count(f"1 of R-{run.pk} : legal hold “Lawsuit 12/26” (Holdpoint)") == 3
    assert "3 by legal hold" in said
    rows = {row[0]: row[1:] for row in table(page)}
    line, beside = prune.lines.get(run=run), prune.lines.get(run=other)
    assert rows[run.plan.agent] == ["1", "41", filesizeformat(line.size), "38", "3", filesizeformat(line.freed)]
    assert rows[other.plan.agent] == ["1", "41", filesizeformat(beside.size), "41", "0", filesizeformat(beside.freed)]


def test_what_is_freed_counts_what_nothing_names_any_more_with_the_run_it_belonged_to() -> None:
    run = ended(400)
    keep(run, keep_last=2)
    prune = looked()
    assert prunes.apply(ordered(prune))
    agrees(prune)
    assert prune.lines.get(run=run).freed > 0
    assert len(seqs(run)) <= 3


def test_what_a_policy_that_was_changed_let_stay_says_so() -> None:
    run = ended(60)
    keep(run, keep_last=20)
    prune = ordered(looked())
    keep(run, keep_last=50)
    assert prunes.apply(prune)
    agrees(prune)
    said, _ = reported(prune)
    assert f"41 of R-{run.pk} : the policy was changed meanwhile" in text_of(said)


def test_a_name_that_was_given_since_is_named() -> None:
    run, claim, head = grown(60)
    keep(run, keep_last=5)
    prune = looked()
    more(head, claim, 1)
    holds.name(run, prune.lines.get(run=run).ranges[-1][1], "Before it went wrong", by=SYSTEM)
    assert prunes.apply(ordered(prune))
    agrees(prune)
    assert f"1 of R-{run.pk} : name “Before it went wrong” (Holdpoint)" in text_of(reported(prune)[0])


def test_what_a_stop_left_says_so_and_what_was_not_recorded_is_counted_all_the_same() -> None:
    run = ended(60)
    keep(run, keep_last=20)
    prune = ordered(looked())
    prunes.stop(prune, by=SYSTEM)
    page, client = reported(prune)
    assert f"41 of R-{run.pk} : the prune was stopped before it reached them" in text_of(page)
    PruneLine.objects.filter(prune=prune).update(done=True)  # as lines are that were applied before reasons were kept
    again = text_of(client.get(f"/admin/checkpoints/prune/{prune.pk}/change/").content.decode())
    assert "41 of the 41 checkpoints of the dry run are kept: 41 of R-" in again
    assert RetentionPolicy.objects.filter(agent=run.plan.agent).count() == 1


def test_deleting_that_costs_more_than_it_frees_is_not_told_as_a_negative_size() -> None:
    prune = Prune(freed=-14_336, size=20_000, checkpoints=3, removed=3)
    assert prune_report.freed(prune).startswith("which takes 14.0\xa0KB more")
