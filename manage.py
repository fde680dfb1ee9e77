#!/usr/bin/env python
"""Django's command line for Compute Grid."""

import os
import sys


def main() -> None:
    """Run the command. Django is imported here, because each process that reads long texts imports this module."""
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "grid.settings")
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(str(error))  # a sentence for who has set it; where it was noticed helps nobody


if __name__ == "__main__":
    main()
