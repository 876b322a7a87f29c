"""What the loader leaves out of a template changes nothing on the page but blanks."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.template import Context, Engine, Origin

from config.web.template_loader import Loader

ENGINE = Engine()


def loaded(source: str, folder: Path, name: str = "page.html") -> str:
    path = folder / name
    path.write_text(source)
    return Loader(ENGINE).get_contents(Origin(str(path), name, None))


@pytest.mark.parametrize(
    ("source", "read"),
    [
        ("<p>\n    One\n    two.\n  </p>", "<p>\nOne two.\n</p>"),
        ("<p>One {{ a }}\n  {{ b }} two.</p>", "<p>One {{ a }} {{ b }} two.</p>"),
        ("<p>One\n  <b>two</b>\n  three.</p>", "<p>One\n<b>two</b>\nthree.</p>"),
        ("{% if a %}\n  One\n{% else %}\n  two\n{% endif %}", "{% if a %}\nOne\n{% else %}\ntwo\n{% endif %}"),
        ('<a class="a"\n   href="b">c</a>', '<a class="a" href="b">c</a>'),
        ("One\n\n  two", "One\n\ntwo"),
    ],
)
def test_sentences_stand_on_one_line_and_indentation_goes(source: str, read: str, tmp_path: Path) -> None:
    assert loaded(source, tmp_path) == read
    words = {"a": "x", "b": "y"}
    drawn, as_written = (ENGINE.from_string(text).render(Context(words)) for text in (read, source))
    assert drawn.split() == as_written.split()


def test_the_text_of_a_mail_stays_as_it_is(tmp_path: Path) -> None:
    assert loaded("One\n  two", tmp_path, "mail.txt") == "One\n  two"
