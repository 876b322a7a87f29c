"""What the check of the templates finds, and what it leaves alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.house import templates


def found(source: str, *in_attributes: str) -> list[tuple[int, str]]:
    return [(fault.line, fault.what) for fault in templates.faults(source, in_attributes=frozenset(in_attributes))]


@pytest.mark.parametrize(
    ("source", "line", "said"),
    [
        ("<p>\n  Nothing is sent.</p>", 2, "Nothing is sent."),
        ("<p>{{ count }} of {{ all }}</p>", 1, "of"),
        ("{% if open %}Open{% endif %}", 1, "Open"),
        ("{% block title %}Inbox{% endblock %}", 1, "Inbox"),
        ('<nav class="queues" aria-label="Queues"></nav>', 1, "Queues"),
        ('<abbr\n  title="{% if open %}Open{% endif %}"></abbr>', 2, "Open"),
        ('<input placeholder="none">', 1, "none"),
        ('<img alt="A picture" src="a.png">', 1, "A picture"),
        ('<input type="submit" value="Send">', 1, "Send"),
        ('<p>{% translate "Sent" %} by {{ person }}</p>', 1, "by"),
        ("<p>{# no words #}Words</p>", 1, "Words"),
        ("<p>{# one\nline #} Words</p>", 1, "{# one line #} Words"),
        ("<p><code>pay</code> was done</p>", 1, "was done"),
        ('<p>{{ team|default:"in no team yet" }}</p>', 1, '_("in no team yet")'),
        ('{% include "says.html" with plain="Send these verdicts" %}', 1, '_("Send these verdicts")'),
        ("{% blocktranslate %}Sent{% endblocktranslate %}\nUnsent", 2, "Unsent"),
        ('<p>{{ count }}{{ count|pluralize:"st,nd" }}</p>', 1, "blocktranslate count"),
    ],
)
def test_words_that_nobody_could_translate_are_found(source: str, line: int, said: str) -> None:
    [(at, what)] = found(source)
    assert at == line
    assert said in what


@pytest.mark.parametrize(
    "source",
    [
        '<p>{% translate "Nothing is sent." %}</p>',
        "{% blocktranslate trimmed with who=person %}\n  <b>{{ who }}</b> answered\n{% endblocktranslate %}",
        "{% blocktranslate count n=all %}{{ n }} run{% plural %}{{ n }} runs{% endblocktranslate %}",
        '<p title="{% translate "Sent" %}">{{ words }}</p>',
        '<p class="{% if open %}open{% endif %}" data-status="{{ state|default:"open" }}">{{ n }}</p>',
        '<input name="text" type="hidden" value="decided">',
        "<p>{# a note to whoever edits this #}</p>{% comment %}and\nanother{% endcomment %}<!-- and one more -->",
        "<code>manage.py verify</code><kbd>Ctrl</kbd><style>p { margin: 0 }</style><script>let a = b;</script>",
        "<!doctype html><title>{{ title }} · Holdpoint</title>",
        "<p>{{ size }} KB, {{ n }} n, 5 min, 12 €, &nbsp;</p>",
        '<input placeholder="gate:42"><input placeholder="R-7">',
        '<p>{{ team|default:_("none") }}</p>{% include "says.html" with plain=_("Send these verdicts") %}',
        '<p>{% url "inbox" as back %}{% icon "x" size="s" %}{{ at|date:"j M Y" }}</p>',
        '<a href="{% if a > b %}?{{ x }}{% endif %}" data-words="not read">{{ a }}</a>',
    ],
)
def test_what_is_marked_or_not_read_is_left_alone(source: str) -> None:
    assert found(source) == []


def test_a_long_line_is_found() -> None:
    assert found("{{ a }}\n" + "{{ a }}" + " " * (templates.LONGEST - 7)) == []
    [(at, what)] = found("{{ a }}\n" + "{{ a }}" + " " * (templates.LONGEST - 6))
    assert at == 2
    assert "161 characters" in what


def test_what_fills_an_attribute_is_no_text() -> None:
    base = '<body class="{% block page %}{% endblock %}" {% include "described.html" %}>{% block title %}{% endblock %}'
    within = templates.found_in_attributes([base])
    assert within == {"page", "described.html"}
    page = "{% block page %}error{% endblock %}{% block title %}Gone{% endblock %}"
    assert [fault.what for fault in templates.faults(page, in_attributes=within)] == ["mark for translation: “Gone”"]
    described = ' form="decision" aria-describedby="note"'
    assert templates.faults(described, "described.html", within) == []
    spoken = "\n{% if x %} aria-label='Words'{% endif %}"
    assert templates.faults(spoken, "described.html", within) == [(2, "mark for translation: “Words”")]


def test_the_command_says_what_to_do_where_and_fails(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "bad.html").write_text("<p>\nWords</p>")
    (tmp_path / "good.html").write_text('{% translate "Words" %}')
    command = [sys.executable, "-m", "tests.house.templates"]
    run = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stdout == f"{tmp_path}/inner/bad.html:2: mark for translation: “Words”\n"
    run = subprocess.run([*command, str(tmp_path / "good.html")], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "")


def test_the_pages_have_no_fault() -> None:
    assert len(list(templates.ROOT.rglob("*.html"))) > 100
    assert templates.check([templates.ROOT]) == []
