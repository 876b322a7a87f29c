#!/usr/bin/env python
"""Django's command line for Holdpoint."""

import os
import sys
from pathlib import Path

from config.local import attach, single_instance
from config.local.errors import StackRefused


def main() -> None:
    """Run one management command, on the stack that `make run` started here unless a database is named."""
    if single_instance.needs_nothing(sys.argv[1:]):
        single_instance.prepare()
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
