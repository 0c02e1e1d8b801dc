"""``python -m kafka``: selects a command of ``kafka.cli``."""

from __future__ import annotations

import argparse
import sys
from typing import List

from kafka.internals.lazy_imports import import_late

HELP = """\
commands:
  run      run a program of an older Python and interface as it is
  broker   run a small Kafka in pure Python, of any release
"""
#: Each is a module of kafka.cli with a function main(args); only the selected one is imported.
COMMANDS = ('run', 'broker')


def main(args: List[str]) -> int:
    """Run a command.

    Returns: its exit status.
    Raises: SystemExit: 2 for an invalid command line, 0 for --help.
    """
    if args and args[0] in COMMANDS:  # what follows is the command's, also "--"
        status: int = import_late('kafka.cli.' + args[0]).main(args[1:])
        return status
    parser = argparse.ArgumentParser(
        usage='python -m kafka [-h] COMMAND [ARGS ...]',
        prog='python -m kafka',
        description='Clients of Apache Kafka, and brokers for tests.',
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('command', choices=COMMANDS, metavar='COMMAND', help='see below')
    parser.parse_args(args[:1])
    parser.error('expected a command')


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
