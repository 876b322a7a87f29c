#!/usr/bin/env python
"""Django's command line for Holdpoint."""

import os
import sys
from pathlib import Path

from config.local import StackRefused, attach


def main() -> None:
    """Run one management command, on the stack that `make run` started here unless a database is named."""
    if attach.needs_nothing(sys.argv[1:]):
        attach.fill_in_placeholders()
    else:
        try:
            attach.join(Path(__file__).resolve().parent)
        except StackRefused as refused:
            raise SystemExit(str(refused)) from None
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
