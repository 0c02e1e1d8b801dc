"""``python -m kafka run``: run a program for an older Python and an older interface, unchanged.

It parses the command line and sets the environment variables for the dialect and the text mode.
``program`` runs the program, ``old_source`` compiles its source.
"""

from __future__ import annotations

import codecs
import os
import sys
from typing import List, NamedTuple, Optional

from kafka.cli.import_hook import install
from kafka.cli.program import run_module, run_path

USAGE = """\
usage: python -m kafka run [OPTIONS] PROGRAM [ARGS ...]
       python -m kafka run [OPTIONS] -m MODULE [ARGS ...]

Run a program that was written for kafka-python 0.9 or 1.x as `python PROGRAM` would.
Sources that today's Python does not compile are read as Python before 3.7, where
`async` is a name, or as Python 2 (pip install kafka-evergreen[py2]).

PROGRAM              a file, a directory or zip file with __main__.py, or - (stdin)
-m MODULE            run a module by its name
--dialect 0.9.5      calls that fit both eras mean the interface of 0.9.5
--text ENCODING      encode str keys and values with this encoding (default utf-8)
--no-text            refuse str keys and values, as 0.9.5 on Python 3 did
-h, --help           show this
"""
DIALECTS = ('0.9.5',)
DIALECT_SWITCH = 'KAFKA_LEGACY_DIALECT'
TEXT_SWITCH = 'KAFKA_LEGACY_TEXT'
DEFAULT_ENCODING = 'utf-8'


class Usage(Exception):
    """An invalid command line."""


class RunCommand(NamedTuple):
    """A parsed command line; `text` is '' for --no-text and None for the default."""

    target: str
    args: List[str]
    is_module: bool
    dialect: Optional[str]
    text: Optional[str]


def main(args: List[str]) -> int:
    """Run a command line.

    Returns: 0 when the program has ended, 2 for an invalid command line.
    Raises: what ends the interpreter as the program's end does: SystemExit or KeyboardInterrupt.
    """
    if args and args[0] in ('-h', '--help'):
        sys.stdout.write(USAGE)
        return 0
    try:
        command = parse(args)
    except Usage as error:
        sys.stderr.write('%s\npython -m kafka run: %s\n' % (USAGE, error))
        return 2
    _switch(command)
    install()
    (run_module if command.is_module else run_path)(command.target, command.args)
    return 0


def parse(args: List[str]) -> RunCommand:
    """Parse a command line; what follows the program's name is passed to the program.

    Raises: Usage for an unknown option or an invalid value.
    """
    rest = list(args)
    dialect: Optional[str] = None
    text: Optional[str] = None
    while rest:
        option, equals, value = rest.pop(0).partition('=')
        if option == '-m':
            return RunCommand(_next(rest, option), rest, True, dialect, text)
        if option == '--no-text':
            text = ''
        elif option == '--dialect':
            dialect = _dialect(value if equals else _next(rest, option))
        elif option == '--text':
            text = _encoding(value if equals else _next(rest, option))
        elif option.startswith('-') and option not in ('-', '--'):
            raise Usage('unknown option %s' % option)
        else:
            target = _next(rest, option) if option == '--' else option + equals + value
            return RunCommand(target, rest, False, dialect, text)
    raise Usage('which program?')


def _next(rest: List[str], option: str) -> str:
    if not rest:
        raise Usage('%s needs a value' % option)
    return rest.pop(0)


def _dialect(value: str) -> str:
    if value not in DIALECTS:
        raise Usage('--dialect must be one of %s, not %r' % (', '.join(DIALECTS), value))
    return value


def _encoding(value: str) -> str:
    try:
        'a'.encode(value)
        codecs.lookup(value)
    except (LookupError, ValueError):
        raise Usage('--text must be an encoding of text, not %r' % value) from None
    return value


def _switch(command: RunCommand) -> None:
    """Set the environment variables, for this process and those that it starts."""
    if command.dialect is not None:
        os.environ[DIALECT_SWITCH] = command.dialect
    if command.text is not None:
        os.environ[TEXT_SWITCH] = command.text
    else:
        os.environ.setdefault(TEXT_SWITCH, DEFAULT_ENCODING)
