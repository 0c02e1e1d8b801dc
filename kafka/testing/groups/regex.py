"""The regular expressions of clients: those that RE2 and Python's ``re`` read alike.

Brokers match them with RE2J (KIP-848, KIP-1152), in time that grows with the text. ``re`` tries all
ways in turn and would block every broker of the process for one client's ``(a+)+b``. So what ``re``
reads otherwise, what only RE2 has and what ``re`` could take long for is refused. Pure.
"""

from __future__ import annotations

import math
import re
from typing import Iterable, List, NamedTuple, Optional, Set

#: The length of an expression, how deep its groups are nested, and a count of repeats.
LONGEST, DEEPEST, MOST_REPEATS = 1000, 100, 1000
#: The number of parts that re may try in all ways to match a text, which take about a second.
MOST_STEPS = 30_000_000
#: The longest name of a topic: an expression that takes too long for it is refused.
LONGEST_NAME = 249
#: What an error says of an expression that Apache Kafka may take.
_LIMIT = 'the embedded broker refuses this, whatever Apache Kafka does'

_ESCAPE = r'\\[afnrtvdDwW]|\\x[0-9A-Fa-f]{2}|\\[!-/:-@\[-`{-~]'
# re warns of sets within sets, of which it may have some one day.
_MEMBER = r'(?:%s|(?!--|&&|~~|\|\|)[^\\[\]])' % _ESCAPE
_COUNT = r'0|[1-9]\d{0,3}'
_TOKEN = re.compile(
    rf'(?P<repeat>[*+?]\??|\{{(?P<least>{_COUNT})(?P<comma>,(?P<most>{_COUNT})?)?\}}\??)'
    r'|(?P<open>\((?!\?)|\(\?P<[A-Za-z_]\w*>|\(\?[is]*(?:-[is]+)?:)'
    r'|(?P<close>\))'
    r'|(?P<choice>\|)'
    r'|(?P<end>\$|\\z)'
    r'|(?P<place>\^|\\[Ab])'
    rf'|(?P<one>{_ESCAPE}|[^\\[(){{*+?|^$]|\[(?:\^|(?!\^))(?:\]|{_MEMBER}){_MEMBER}*\])',
    re.ASCII | re.DOTALL,
)
_FLAGS = re.compile(r'\(\?[is]+\)')
#: With the flag i, re and RE2 differ about what is not ASCII.
_WITH_I = re.compile(r'\(\?[is]*i')
_NOT_ASCII = re.compile(r'[^\x00-\x7f]|\\x[89A-Fa-f]')


class _Ways(NamedTuple):
    """The ways in which a part may match: `choices` for each choice of where `open` repeats end.

    Attributes: parts: how many parts each way has; counted: how often counted repeats repeat it.
    """

    choices: int = 1
    open: int = 0
    parts: int = 1
    counted: int = 1

    def then(self, other: _Ways) -> _Ways:
        return _Ways(
            min(self.choices * other.choices, MOST_STEPS),
            self.open + other.open,
            self.parts + other.parts,
            max(self.counted, other.counted),
        )

    def beside(self, other: _Ways) -> _Ways:
        return _Ways(
            self.choices + other.choices,
            max(self.open, other.open),
            self.parts + other.parts,
            max(self.counted, other.counted),
        )

    def steps(self, length: int) -> int:
        """Return how many parts are tried at most for a text of some length."""
        return self.choices * self.parts * math.comb(length + self.open, self.open)


class _Group:
    """A group that is being read.

    Attributes: before: the ways of all alternatives but the last, None without any; read: those of
    the last one, less its last part; part: those of that part, None where nothing can be repeated.
    """

    def __init__(self) -> None:
        self.before: Optional[_Ways] = None
        self.read = _Ways()
        self.part: Optional[_Ways] = None

    def take(self, part: Optional[_Ways]) -> None:
        """Add a part."""
        self.read, self.part = self._alternative(), part

    def choose(self) -> None:
        """Begin another alternative."""
        self.before, self.read, self.part = self.ways(), _Ways(), None

    def ways(self) -> _Ways:
        """Return those of the group."""
        last = self._alternative()
        return last if self.before is None else self.before.beside(last)

    def _alternative(self) -> _Ways:
        return self.read if self.part is None else self.read.then(self.part)


class _Reader:
    """Reads an expression part by part.

    Attributes: in_python: the parts for re; groups: those that are open, the outermost one first.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.in_python: List[str] = []
        self.groups = [_Group()]

    def read(self) -> _Ways:
        """Read all of it. Raises ValueError at what is not known."""
        flags = _FLAGS.match(self.text)
        at = flags.end() if flags is not None else 0
        self.in_python.append(self.text[:at])
        while at < len(self.text):
            token = _TOKEN.match(self.text, at)
            if token is None:
                text = 'is not one that RE2 and Python read alike: %s' % _LIMIT
                raise self._refused(at, at + 10, text)
            self._take(token)
            at = token.end()
        if len(self.groups) > 1:
            raise self._refused(at, at, 'lacks a ")"')
        return self.groups[0].ways()

    def _take(self, token: re.Match[str]) -> None:
        kind, group = token.lastgroup, self.groups[-1]
        if kind == 'repeat':
            group.part = self._repeated(group.part, token)
            group.take(None)  # a repeat is not repeated
        elif kind == 'open':
            if len(self.groups) > DEEPEST:
                raise self._refused(*token.span(), 'is in more than %d groups' % DEEPEST)
            self.groups.append(_Group())
        elif kind == 'close':
            if len(self.groups) == 1:
                raise self._refused(*token.span(), 'has no "("')
            self.groups.pop()
            self.groups[-1].take(group.ways())
        elif kind == 'choice':
            group.choose()
        else:
            group.take(_Ways())
            if kind != 'one':
                group.take(None)  # a place is not repeated
        self.in_python.append(r'\Z' if kind == 'end' else token.group())

    def _repeated(self, part: Optional[_Ways], token: re.Match[str]) -> _Ways:
        """Return the ways of a part that is repeated."""
        if part is None:
            raise self._refused(*token.span(), 'repeats nothing')
        if token.group().startswith('?'):
            return part.beside(_Ways())
        counted, least = part.counted, int(token['least'] or 0)
        most = least if token['comma'] is None else int(token['most'] or max(least, 1))
        if token['least'] is not None:
            counted *= max(most, 1)
            if counted > MOST_REPEATS:
                text = 'repeats more than %d times, with the repeats inside' % MOST_REPEATS
                raise self._refused(*token.span(), text)
        parts = part.parts * max(most, 1)
        if token['least'] is None or (token['comma'] and not token['most']):
            if part.choices > 1 or part.open:
                text = 'repeats what may match in several ways, for which re could take very long'
                raise self._refused(*token.span(), '%s: %s' % (text, _LIMIT))
            return _Ways(1, 1, parts, counted)
        choices = max(1, most - least + 1)
        if part.choices > 1 or part.open:
            choices = min((part.choices + 1) ** most, MOST_STEPS)
        return _Ways(choices, part.open * most, parts, counted)

    def _refused(self, start: int, end: int, what: str) -> ValueError:
        where = 'regular expression %r: %r at %d' % (self.text, self.text[start:end], start)
        return ValueError('%s %s' % (where, what))


class Pattern:
    """An expression that is matched with whole texts, for one search.

    Raises: ValueError: it is invalid, or not among those that this broker knows.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > LONGEST:
            wrong = 'a regular expression has %d characters, expected at most %d: %s'
            raise ValueError(wrong % (len(text), LONGEST, _LIMIT))
        reader = _Reader(text)
        self._ways = reader.read()
        wrong = ''
        if self._ways.steps(LONGEST_NAME) > MOST_STEPS:
            wrong = 're could take very long, expected fewer repeats and choices'
        elif _WITH_I.search(text) and _NOT_ASCII.search(text):
            wrong = 'expected ASCII characters with the flag i'
        if wrong:
            raise ValueError('regular expression %r: %s: %s' % (text, wrong, _LIMIT))
        try:
            self._compiled = re.compile(''.join(reader.in_python), re.ASCII)
        except (re.error, RecursionError) as error:
            raise ValueError('regular expression %r: %s' % (text, error)) from None
        self._left = 3 * MOST_STEPS

    def __repr__(self) -> str:
        return '<Pattern %r>' % self.text

    def matches(self, text: str) -> bool:
        """Return True if the expression matches the whole text.

        False as well after texts with which re could have taken three seconds, this one included.
        """
        self._left -= self._ways.steps(len(text))
        return self._left >= 0 and bool(self._compiled.fullmatch(text))

    def matching(self, texts: Iterable[str]) -> Set[str]:
        """Return the texts that match."""
        return {text for text in texts if self.matches(text)}
