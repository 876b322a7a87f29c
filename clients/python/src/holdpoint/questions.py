"""Answers the questions that people put to the program at its open gate."""

from __future__ import annotations

import logging

from .answers import Question, Questions
from .errors import Problem
from .exchange import Op
from .sending import Api

LOG = logging.getLogger("holdpoint")
LONGEST = 8_000  # characters of an answer


def answered(api: Api, gate: int) -> Op[None]:
    """Answer each open question at the gate by the client's `on_question`; what it raises is told to people."""
    answer = api.habits.on_question
    if answer is None:
        return
    found = yield from api.get(f"gates/{gate}/questions", Questions)
    for question in found.items:
        if question.status != "asked" or question.text is None:
            continue
        try:
            text, failed = answer(question), False
        except Exception as error:
            LOG.exception("Question %s at gate %s was not answered.", question.id, gate)
            text, failed = f"{type(error).__name__}: {error}", True
        body = {"question": question.id, "text": (text or "no words")[:LONGEST], "failed": failed or not text}
        try:
            yield from api.post(f"gates/{gate}/answers", body, Question, key=f"answer-{gate}-{question.id}")
        except Problem as refusal:  # another process of the program has answered, or the words differ from those before
            LOG.warning("The answer to question %s was not taken: %s", question.id, refusal)
