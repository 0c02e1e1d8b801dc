"""``python -m kafka``: finds the command that is meant. What it does is in ``kafka.cli``."""

from __future__ import annotations

import sys
from typing import List

from kafka.cli import run

USAGE = """\
usage: python -m kafka COMMAND [ARGS ...]

run      run a program of an older Python and interface as it is
"""
COMMANDS = {'run': run.main}


def main(args: List[str]) -> int:
    """Run a command. Returns: its exit status; 2 for a command that there is not."""
    if args and args[0] in COMMANDS:
        return COMMANDS[args[0]](args[1:])
    if args and args[0] in ('-h', '--help'):
        sys.stdout.write(USAGE)
        return 0
    sys.stderr.write(USAGE)
    return 2


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
