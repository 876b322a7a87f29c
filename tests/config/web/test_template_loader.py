"""What the loader leaves out of a template changes nothing on the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.template import Context, Engine, Origin
from django.utils.safestring import SafeString

from config.web.template_loader import Loader

ENGINE = Engine(libraries={"i18n": "django.templatetags.i18n"}, builtins=["django.templatetags.i18n"])
SAID = {"name": "<b>", "safe": SafeString("<i>"), "count": 2, "one": {"pk": 1_000}, "none": None}
SOURCES = [
    '{% translate "50% of <b> & it\'s" %}',
    '<a title="{% translate "Hide" %}">{% translate "Show" %}</a>',
    "{% blocktranslate %}{{ name }}, {{ safe }}, {{ count }}, {{ none }}, {{ missing }}: 100%{% endblocktranslate %}",
    "{% blocktranslate with run=one.pk who=name|upper %}R-{{ run }} of {{ who }}{% endblocktranslate %}{{ run }}",
    "{% blocktranslate trimmed %}\n  one {{ name }}\n\n  two  three\n{% endblocktranslate %}",
    "{% blocktranslate trimmed with run=one.pk %}\n R-{{ run }}\n{% endblocktranslate %}",
    "{% blocktranslate count number=count %}{{ number }} run{% plural %}{{ number }} runs{% endblocktranslate %}",
    "{% blocktranslate trimmed with run=one.pk count n=count %}R{% plural %}Rs {{ run }}{% endblocktranslate %}",
    "{% blocktranslate asvar said %}for {{ name }}{% endblocktranslate %}[{{ said }}]",
    '{% blocktranslate with day=name|default:"j M" %}on {{ day }}{% endblocktranslate %}',
    '{% translate "Yes" as yes %}{{ yes }}{% translate name noop %}',
    "{% blocktranslate %}a{% endblocktranslate %} {{ name }} {% blocktranslate %}b{% endblocktranslate %}",
]


def loaded(source: str, folder: Path) -> str:
    path = folder / "page.html"
    path.write_text(source)
    return Loader(ENGINE).get_contents(Origin(str(path), "page.html", None))


def drawn(source: str) -> str:
    return ENGINE.from_string(source).render(Context(SAID))


@pytest.mark.parametrize("source", SOURCES)
def test_words_are_those_that_their_marks_write(source: str, tmp_path: Path) -> None:
    assert drawn(loaded(source, tmp_path)) == drawn(source.replace("\n  ", "\n").replace("\n ", "\n"))


def test_only_marks_that_need_looking_up_are_left(tmp_path: Path) -> None:
    read = [loaded(source, tmp_path) for source in SOURCES]
    assert [at for at, source in enumerate(read) if "translate" in source] == [6, 7, 8, 9, 10]


def test_with_several_languages_every_mark_stays(settings: Any, tmp_path: Path) -> None:
    settings.USE_I18N = True
    assert [loaded(source, tmp_path) for source in SOURCES[:4]] == SOURCES[:4]
