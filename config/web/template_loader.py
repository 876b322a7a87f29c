"""Loads the project's templates without what readers of the source need and a page does not: indentation, and the line
breaks within a sentence.
"""

from __future__ import annotations

import re

from django.template import Origin
from django.template.loaders import filesystem

# Between two words. A line break beside a tag stays, so that an error names the file's line or one near it.
WITHIN_SENTENCE = re.compile(r"(?<![\n>])(?<!%})(?<!#})\n[ \t]+(?![ \t\n<]|{%|{#)")
INDENTATION = re.compile(r"\n[ \t]+")


class Loader(filesystem.Loader):
    """Reads a page's template with each line from its first character on; texts of mails stay as they are."""

    def get_contents(self, origin: Origin) -> str:
        """Return the template's source."""
        source = super().get_contents(origin)
        return source if not origin.name.endswith(".html") else INDENTATION.sub("\n", WITHIN_SENTENCE.sub(" ", source))
