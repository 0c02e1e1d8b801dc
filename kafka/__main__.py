"""``python -m kafka``: selects a command of ``kafka.cli``."""

from __future__ import annotations

import sys
from typing import List

from kafka.internals.lazy_imports import import_late

USAGE = """\
usage: python -m kafka COMMAND [ARGS ...]

run      run a program of an older Python and interface as it is
broker   run a small Kafka in pure Python, of any release
"""
#: Each is a module of kafka.cli with a function main(args); only the selected one is imported.
COMMANDS = ('run', 'broker')


def main(args: List[str]) -> int:
    """Run a command. Returns: its exit status; 2 for an unknown command."""
    if args and args[0] in COMMANDS:
        status: int = import_late('kafka.cli.' + args[0]).main(args[1:])
        return status
    if args and args[0] in ('-h', '--help'):
        sys.stdout.write(USAGE)
        return 0
    sys.stderr.write(USAGE)
    return 2


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
