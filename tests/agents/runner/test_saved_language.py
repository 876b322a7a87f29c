"""A question that is saved is in the installation's language, whatever language whoever made the run go on reads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.utils import translation
from django.utils.translation import trans_real

from approvals.english import listed
from tests.factories.driven_runs import advance_to_rest, make_run, open_gate

GERMAN = {"Stop the run": "Den Lauf beenden", "%(first)s and %(last)s": "%(first)s und %(last)s"}


@pytest.fixture
def german(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Translate into German."""
    monkeypatch.setattr(translation, "_trans", trans_real)
    monkeypatch.setattr(trans_real, "_translations", {})
    trans_real.translation("de")._catalog._catalogs.insert(0, GERMAN)  # type: ignore[attr-defined]
    with translation.override("de"):
        yield


@pytest.mark.usefixtures("german")
def test_a_recovery_question_is_the_same_bytes_in_any_language() -> None:
    assert translation.gettext("Stop the run") == "Den Lauf beenden"
    question = open_gate(advance_to_rest(make_run("stumbler", mode="raise"))).standing().card.question
    assert question is not None
    assert question["text"] == "“Stumble” did not succeed after 2 attempts. How should the run go on?"
    assert [choice["label"] for choice in question["choices"]][-1] == "Stop the run"


@pytest.mark.usefixtures("german")
def test_names_are_listed_in_the_readers_language() -> None:
    assert listed(["Ann", "Bob", "Ann", "Mira"]) == "Ann, Bob und Mira"
    assert (listed(["Ann"]), listed([])) == ("Ann", "")
