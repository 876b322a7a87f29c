"""Finds passages in the bundled corpus by the words that they share with a question; no model is asked."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from .state import Passage

CORPUS = Path(__file__).parent / "corpus"
COMMON = re.compile(
    "a|an|and|are|at|by|does|for|has|have|how|in|is|it|long|many|may|much|of|often|on|or|that|the|there|to|what|who"
)
RESTRICTED = "(restricted)"


def search(question: str, most: int) -> list[Passage]:
    """Return the passages that share the most words with the question, the best first."""
    asked = words(question)
    rare = Counter(word for passage in passages() for word in set(words(passage.text)))
    scored = [(sum(1 / rare[word] for word in set(asked) & set(words(each.text))), each) for each in passages()]
    best = sorted(((score, each) for score, each in scored if score), key=lambda pair: (-pair[0], pair[1].source))
    return [each for _, each in best[:most]]


def passages() -> list[Passage]:
    """Return every sentence of the corpus with its source."""
    found = []
    for file in sorted(CORPUS.glob("*.md")):
        title, _, body = file.read_text().partition("\n")
        for sentence in re.split(r"(?<=[.;])\s+", " ".join(body.split())):
            found.append(Passage(source=file.stem, text=sentence, restricted=RESTRICTED in title))
    return found


def words(text: str) -> list[str]:
    """Return the words of a text that say something, without their endings."""
    return [
        re.sub(r"(es|s|ed|ing)$", "", word)
        for word in re.findall(r"[a-z]+", text.lower())
        if not COMMON.fullmatch(word)
    ]
