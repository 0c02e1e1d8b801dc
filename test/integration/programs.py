"""The words in which the tables of test/programs are written.

Owns what a row is, and the judgements that are no plain comparison. The rows stand in
programs_09.py (the interface of 0.9.5) and programs_later.py; test_programs.py does what they say.

Texts may hold these words as %(word)s: ``hosts`` and ``broker`` (all brokers, the first one),
``topic`` and ``other`` (topics that are there, with two partitions each), ``new`` and ``newer``
(topics that are not), ``group`` and ``group2`` (names that nobody used), ``dead`` (an address where
nobody listens), ``dir`` (a folder of one's own).
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

PLAIN = ()
RUN = ('-m', 'kafka', 'run')
MODULE = ('-m', 'kafka', 'run', '-m')
ANY = None  # in place of a partition: sorted, wherever they are


class Program(NamedTuple):
    """One way to start one program, once or several times, and what is expected of it."""

    file: str  # below test/programs; with MODULE the name of the module
    arguments: str = '%(hosts)s %(topic)s'
    prints: str = ''  # a pattern behind ``re:``
    again: Optional[str] = None  # what a second run prints, if there is one
    sort: bool = False  # lines in any order
    start: Tuple[str, ...] = PLAIN
    code: int = 0
    logs: str = ''  # a pattern of all that goes to stderr
    stdin: str = ''
    environment: Dict[str, str] = {}
    files: Dict[str, str] = {}  # name in the folder -> text
    finds: Dict[str, Dict[int, list]] = {}  # topic -> partition -> messages
    stored: Dict[str, Dict[int, int]] = {}  # group -> partition -> offset
    in_broker: bool = False  # ... kept by the coordinator, not in ZooKeeper
    leaves: Dict[str, Dict[Optional[int], Any]] = {}  # as finds, afterwards
    commits: Dict[str, Dict[int, int]] = {}  # as stored, afterwards
    absent: Tuple[str, ...] = ()  # topics that nobody may have made
    wrote: Optional[Callable[[str, Dict], None]] = None  # judges (printed, contents of topic)
    closes: bool = True  # what it opened; if not, that is what its owner wrote
    since: str = '0.8.0'
    some: Tuple[str, ...] = ('0.8.2.2', '4.4.0')  # the releases to run it on if none is named
    name: str = ''  # of the test, where a program has several rows

    @property
    def outputs(self) -> List[str]:
        """What each of its runs prints."""
        return [self.prints] if self.again is None else [self.prints, self.again]

    @property
    def id(self) -> str:
        """The name of its test."""
        return self.name or self.file.rpartition('.py')[0] or self.file


def numbered(name: str, count: int, start: int = 0) -> list:
    """Return ``name 0``, ``name 1``, ... as bytes."""
    return [b'%s %d' % (name.encode(), number) for number in range(start, start + count)]


def keys_stay_together(printed: str, contents: Dict) -> None:
    """Each key is in one partition, with its values in order."""
    homes: Dict[bytes, Dict[int, list]] = {}
    for partition, messages in contents.items():
        for key, value in messages:
            homes.setdefault(key, {}).setdefault(partition, []).append(value)
    values = {key: list(where.values()) for key, where in homes.items()}
    assert values == {b'red': [[b'1', b'4']], b'green': [[b'2 and more']], b'blue': [[b'3']]}


def what_was_accepted(printed: str, contents: Dict) -> None:
    """The topic holds what the program counted as accepted: no more, no less."""
    accepted = sorted(line.split()[1] for line in printed.splitlines() if 'accepted ' in line[:9])
    values = sorted(value.decode() for messages in contents.values() for _, value in messages)
    assert values == accepted
    assert printed.startswith('2000 offered, some dropped, some accepted\n')


AB = {0: [b'a0', b'a1', b'a2', b'a3'], 1: [b'b0', b'b1', b'b2']}

# What goes to the log, and with it to stderr where a program has not set up logging.
STOP = r'producer\.stop\(\) has nothing to stop: <\w+ [^\n]*> is not asynchronous\n'
ASYNC = r'the option async is deprecated, its name is async_send now\n'
NO_ANSWER = r'127\.0\.0\.1:\d+ did not answer: [^\n]*\n'
