"""What the check of words in scripts finds, and what it leaves alone."""

from __future__ import annotations

import pytest

from tests.house import script_words


@pytest.mark.parametrize(
    ("source", "line", "said"),
    [
        ('say("Draft not saved");', 1, "Draft not saved"),
        ('\nlabel.textContent = "Hide";', 2, "Hide"),
        ("say(`Draft saved, ${clock(at)}`);", 1, "Draft saved, {}"),
        ('say(`${words || "what is missing"}`);', 1, "what is missing"),
        ("say(gettext(`Sent by ${name}`));", 1, "Sent by {}"),
        ('ngettext("%(count)s run", "%(count)s runs", n, "as it is");', 1, "as it is"),
        ('say("Not sent"); // not translated:', 1, "Not sent"),
    ],
)
def test_words_that_nobody_could_translate_are_found(source: str, line: int, said: str) -> None:
    [(at, what)] = script_words.faults(source)
    assert at == line
    assert said in what


@pytest.mark.parametrize(
    "source",
    [
        '// A comment with "Not sent" in it\n/* and "Not sent"\n in this */',
        'say(gettext("Not sent"), gettext("in %(time)s", { time }));',
        'say(ngettext("%(count)s new run", "%(count)s new runs", number));',
        'form.querySelector(\'[name="verdict"]:checked\');\nevent.target.closest("input, textarea, select");',
        'note.className = "notice not-sent";\nif (event.key === "Enter") matchMedia("(prefers-color-scheme: dark)");',
        "return `${hours} h ${minutes % 60} min`;",
        'const names = "Jan Feb Mar"; // not translated: as the server writes them',
    ],
)
def test_what_is_marked_or_not_read_is_left_alone(source: str) -> None:
    assert script_words.faults(source) == []


def test_the_scripts_have_no_fault() -> None:
    assert len(list(script_words.ROOT.glob("*.js"))) > 30
    assert script_words.check() == []
