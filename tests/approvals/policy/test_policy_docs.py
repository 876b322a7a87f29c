"""The page for policies' authors: its examples are read by the form's own reader, and need what it says."""

from __future__ import annotations

import json
import re
from functools import reduce

import pytest

from approvals.cards.action import Action
from approvals.cards.card import Card
from approvals.policy.requirements import Requirements, Role, Rule, Stage, combined, required
from approvals.policy.rules import expressions, facts, stage_words
from approvals.policy.rules.written import _KEYS, Directory, rules_from, rules_text, stages_from, stages_text
from tests.harness.session import ROOT

PAGE = (ROOT / "docs" / "policies.md").read_text()
DIRECTORY = Directory({"Finance": 1, "Legal": 2, "Support": 3, "Research and Development": 4}, {"mira": 7})
OWN = Requirements(stages=(Stage(roles=(Role(quorum=2, teams=(3,)),)),))
EXAMPLES = re.findall(r"```toml\n([^`]*?)```\n\n(?:\|.*\n){2}((?:\|.*\n)+)", PAGE)
ROWS = [
    (rules, *re.fullmatch(r"\| `(.*)` \| (.*) \|", row).groups())  # type: ignore[union-attr]
    for rules, table in EXAMPLES
    for row in table.splitlines()
]


@pytest.mark.parametrize(("rules", "arguments", "said"), ROWS)
def test_each_example_needs_what_the_page_says(rules: str, arguments: str, said: str) -> None:
    card = Card(title="Pay", risk="low", actions=[Action(id="a", tool="pay", arguments=json.loads(arguments))])
    known = facts.of_proposal(card, facts.GateFacts(agent="refunds", step="review"))

    def matches(rule: Rule, each: dict[str, object]) -> bool:
        return expressions.checked(rule.when).is_true(each)

    needs = required(OWN, rules_from(rules, DIRECTORY), known, matches)  # type: ignore[arg-type]
    assert stage_words.requirements(needs, DIRECTORY.names) == said


def test_there_are_examples_and_they_are_written_back_as_they_were() -> None:
    assert len(EXAMPLES) == 3
    assert len(ROWS) > 8
    for text, _ in EXAMPLES:
        rules = rules_from(text, DIRECTORY)
        assert rules_from(rules_text(rules, DIRECTORY), DIRECTORY) == rules
        assert reduce(combined, [rule.applied(OWN) for rule in rules]).slots > 0


def test_its_stages_are_read_and_a_team_that_is_called_like_a_person_is_a_team() -> None:
    [text] = re.findall(r"```stages\n(.*?)```", PAGE, re.DOTALL)
    stages = stages_from(text, DIRECTORY)
    assert stages_text(stages, DIRECTORY) == text.strip()
    quoted = stages_from('1 of "Research and Development"', DIRECTORY)
    assert [role.teams for role in quoted[0].roles] == [(4,)]

    directory, text = Directory({"@mira": 9}, {"mira": 7}), '1 of "@mira" or @mira'
    stages = stages_from(text, directory)
    assert [(role.teams, role.people) for role in stages[0].roles] == [((9,), (7,))]
    assert stages_text(stages, directory) == text


def test_it_lists_every_key_and_every_name() -> None:
    assert re.findall(r"^\| `(\w+)` \| (?!.*arguments)", PAGE, re.MULTILINE)[: len(_KEYS)] == list(_KEYS)
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\|.*$", PAGE, re.MULTILINE))))
    assert {*facts.STANDARD} - {"action"} <= named
