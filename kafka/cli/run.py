"""``python -m kafka run``: run a program for an older Python and an older interface, unchanged.

It parses the command line and sets the environment variables for the dialect and the text mode.
``program`` runs the program, ``old_source`` compiles its source.
"""

from __future__ import annotations

import argparse
import codecs
import os
from typing import List, NamedTuple, Optional

from kafka.cli.import_hook import install
from kafka.cli.program import run_module, run_path

USAGE = """\
python -m kafka run [OPTIONS] PROGRAM [ARGS ...]
       python -m kafka run [OPTIONS] -m MODULE [ARGS ...]"""
DESCRIPTION = """\
Run a program that was written for kafka-python 0.9 or 1.x as `python PROGRAM` would.
Sources that today's Python does not compile are read as Python before 3.7, where
`async` is a name, or as Python 2 (pip install kafka-evergreen[py2]).

  PROGRAM              a file, a directory or zip file with __main__.py, or - (stdin)
  -m MODULE            run a module by its name
"""
DIALECT, TEXT = '--dialect', '--text'  # with a value
DIALECTS = ('0.9.5',)
DIALECT_SWITCH = 'KAFKA_LEGACY_DIALECT'
TEXT_SWITCH = 'KAFKA_LEGACY_TEXT'
DEFAULT_ENCODING = 'utf-8'


class RunCommand(NamedTuple):
    """A parsed command line; `text` is '' for --no-text and None for the default."""

    target: str
    args: List[str]
    is_module: bool
    dialect: Optional[str]
    text: Optional[str]


def main(args: List[str]) -> int:
    """Run a command line.

    Returns: 0 when the program has ended.
    Raises: what ends the interpreter: SystemExit (2 for an invalid command line, 0 for --help, and
    what the program raises) or KeyboardInterrupt.
    """
    command = parse(args)
    _switch(command)
    install()
    (run_module if command.is_module else run_path)(command.target, command.args)
    return 0


def parse(args: List[str]) -> RunCommand:
    """Parse a command line; what follows the program's name is passed to the program.

    Raises: SystemExit for an unknown option or an invalid value, and for --help.
    """
    parser = argparse.ArgumentParser(
        usage=USAGE,
        prog='python -m kafka run',
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    text = 'calls that fit both eras mean the interface of 0.9.5'
    add(DIALECT, choices=DIALECTS, help=text)
    text = 'encode str keys and values with this encoding (default utf-8)'
    add(TEXT, type=_encoding, metavar='ENCODING', help=text)
    text = 'refuse str keys and values, as 0.9.5 on Python 3 did'
    add('--no-text', dest='text', action='store_const', const='', help=text)
    # The program's arguments are cut off before: argparse would read some of them, and drop "--".
    end = _end_of_options(args)
    found, words = parser.parse_args(args[:end]), args[end:]
    is_module = words[:1] == ['-m']
    if is_module or words[:1] == ['--']:
        words = words[1:]
    if not words:
        parser.error('expected a program or -m MODULE')
    return RunCommand(words[0], words[1:], is_module, found.dialect, found.text)


def _end_of_options(args: List[str]) -> int:
    """Return where the program, -m or -- is."""
    at = 0
    while at < len(args) and args[at].startswith('-') and args[at] not in ('-', '--', '-m'):
        at += 2 if args[at] in (DIALECT, TEXT) else 1
    return at


def _encoding(value: str) -> str:
    try:
        'a'.encode(value)
        codecs.lookup(value)
    except (LookupError, ValueError):
        raise argparse.ArgumentTypeError('expected an encoding of text, got %r' % value) from None
    return value


def _switch(command: RunCommand) -> None:
    """Set the environment variables, for this process and those that it starts."""
    if command.dialect is not None:
        os.environ[DIALECT_SWITCH] = command.dialect
    if command.text is not None:
        os.environ[TEXT_SWITCH] = command.text
    else:
        os.environ.setdefault(TEXT_SWITCH, DEFAULT_ENCODING)
