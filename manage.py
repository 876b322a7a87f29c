#!/usr/bin/env python
"""Django's command line for Holdpoint."""

import os
import sys
from pathlib import Path

from config.local import alone, joining


def main() -> None:
    """Run one management command, on the stack that `make run` started here unless a database is named."""
    joining.join(Path(__file__).resolve().parent)
    alone.prepare(sys.argv[1:])
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
