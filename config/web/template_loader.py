"""Loads the project's templates without what readers of the source need and a page does not: indentation, and marks of
words for translation while there is one language (USE_I18N). Looking up each word takes a tenth of a page.
"""

from __future__ import annotations

import re

from django.conf import settings
from django.template import Origin
from django.template.loaders import filesystem
from django.utils.translation import trim_whitespace

INDENTATION = re.compile(r"\n[ \t]+")  # the line breaks stay: an error names the line of the file, or one just above it
WORDS = re.compile(r'\{% translate "([^"]*)" %\}')
# Without a plural, a context or a name for the result; any other stays as it is.
SENTENCE = re.compile(
    r"\{% blocktranslate(?P<trimmed> trimmed)?(?: with(?P<names>(?: \w+=[^\s%]+)+))? %\}"
    r"(?P<words>(?:(?!\{%).)*)\{% endblocktranslate %\}",
    re.DOTALL,
)


class Loader(filesystem.Loader):
    """Reads a page's template with each line from its first character on; texts of mails stay as they are."""

    def get_contents(self, origin: Origin) -> str:
        """Return the template's source."""
        source = super().get_contents(origin)
        if not origin.name.endswith(".html"):
            return source
        source = INDENTATION.sub("\n", source)
        return source if settings.USE_I18N else SENTENCE.sub(_sentence, WORDS.sub(r"\1", source))


def _sentence(found: re.Match[str]) -> str:
    words = trim_whitespace(found["words"]) if found["trimmed"] else found["words"]
    return f"{{% with{found['names']} %}}{words}{{% endwith %}}" if found["names"] else words
