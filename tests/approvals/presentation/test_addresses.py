"""A template's address is the one that Django would write, wherever the project is mounted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.template import Context, Template
from django.urls import NoReverseMatch, set_script_prefix

SOURCES = [
    "{% url 'inbox' %}",
    "{% url 'gate' number %}",
    "{% url 'gate' text %}",
    "{% url 'checkpoint' number 3 %}?at=1",
    "{% url 'agent' name %}",
    "{% url 'gate' number as here %}[{{ here }}]",
]
SAID = {"number": 7, "text": "8", "name": "a&b 'c'"}


@pytest.fixture(autouse=True)
def at_the_root() -> Iterator[None]:
    yield
    set_script_prefix("/")


@pytest.mark.parametrize("prefix", ["/", "/under/"])
@pytest.mark.parametrize("source", SOURCES)
def test_addresses_are_those_of_djangos_tag(source: str, prefix: str) -> None:
    set_script_prefix(prefix)
    for _ in range(2):
        assert Template("{% load holdpoint %}" + source).render(Context(SAID)) == Template(source).render(Context(SAID))


def test_numbers_and_texts_that_are_equal_are_kept_apart() -> None:
    ours = Template("{% load holdpoint %}{% url 'gate' it %}")
    assert ours.render(Context({"it": 1})) == "/gates/1/"
    for other in (True, 1.0):
        with pytest.raises(NoReverseMatch):
            ours.render(Context({"it": other}))
