"""Loads the project's templates without their indentation, which readers of the source need and browsers do not."""

from __future__ import annotations

import re

from django.template import Origin
from django.template.loaders import filesystem

INDENTATION = re.compile(r"\n[ \t]+")  # the line breaks stay: an error names the line of the file


class Loader(filesystem.Loader):
    """Reads a page's template with each line from its first character on; texts of mails stay as they are."""

    def get_contents(self, origin: Origin) -> str:
        """Return the template's source."""
        source = super().get_contents(origin)
        return INDENTATION.sub("\n", source) if origin.name.endswith(".html") else source
