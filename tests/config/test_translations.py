"""Scripts say what they say in the reader's language, as pages do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.test import Client
from playwright.sync_api import Page, expect

from tests.factories import ann, make_team

CATALOGUE = """globalThis.django = {
  gettext: (words) => ({ Live: "Aktuell", "%(count)s new run: show it": "%(count)s neuer Lauf" })[words] ?? words,
  ngettext: (one, many, count) => (count === 1 ? "%(count)s neuer Lauf" : many),
}"""


def test_a_page_in_another_language_loads_the_words_of_scripts(settings: Any) -> None:
    settings.LANGUAGE_CODE = "de"
    page = Client().get("/accounts/login/").content.decode()
    assert '<html lang="de">' in page
    assert '<script src="/jsi18n/?de" defer></script>\n<script src="/static/js/main' in page
    answer = Client().get("/jsi18n/?de")
    assert answer["Content-Type"].startswith("text/javascript")
    assert answer["Cache-Control"] == "max-age=3600"
    assert "django.gettext = " in answer.content.decode()


def test_a_page_in_english_loads_none() -> None:
    assert "jsi18n" not in Client().get("/accounts/login/").content.decode()


def test_scripts_take_their_words_from_what_was_loaded(new_page: Callable[..., Page]) -> None:
    page = new_page(ann(make_team()))
    page.add_init_script(CATALOGUE)
    page.goto("/")
    expect(page.locator("hp-live")).to_contain_text("Aktuell")
    said = """() => import(new URL("/static/js/i18n.js", location)).then(({ gettext, ngettext }) =>
      [ngettext("%(count)s new run: show it", "%(count)s new runs", 1), gettext("in %(time)s", { time: "9 s" })])"""
    assert page.evaluate(said) == ["1 neuer Lauf", "in 9 s"]
