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
LONGEST, DEEPEST, MOST_REPEATS = 20_000, 100, 1000
#: The number of ways to match a text that re may try; it needs about a second for them.
MOST_WAYS = 10_000_000
#: The longest name of a topic: an expression that takes too long for it is refused.
LONGEST_NAME = 249

_ESCAPE = r'\\[afnrtvdDwW]|\\x[0-9A-Fa-f]{2}|\\[!-/:-@\[-`{-~]'
_TOKEN = re.compile(
    r'(?P<repeat>[*+?]\??|\{(?P<least>\d{1,4})(?P<comma>,(?P<most>\d{0,4}))?\}\??)'
    r'|(?P<open>\((?!\?)|\(\?P<[A-Za-z_]\w*>|\(\?[is]*(?:-[is]+)?:)'
    r'|(?P<close>\))'
    r'|(?P<choice>\|)'
    r'|(?P<end>\$|\\z)'
    r'|(?P<place>\^|\\[Ab])'
    # re warns of sets within sets, of which it may have some one day.
    r'|(?P<one>%s|[^\\[(){*+?|^$]|\[\^?\]?(?:%s|(?!--|&&|~~|\|\|)[^\\[\]])*\])'
    % (_ESCAPE, _ESCAPE),
    re.ASCII | re.DOTALL,
)
_FLAGS = re.compile(r'\(\?[is]+\)')


class _Ways(NamedTuple):
    """The ways in which a part may match: `choices` for each choice of where `open` repeats end."""

    choices: int = 1
    open: int = 0
    is_counted: bool = False

    def then(self, other: _Ways) -> _Ways:
        choices = min(self.choices * other.choices, MOST_WAYS + 1)
        return _Ways(choices, self.open + other.open, self.is_counted or other.is_counted)

    def beside(self, other: _Ways) -> _Ways:
        is_counted = self.is_counted or other.is_counted
        return _Ways(self.choices + other.choices, max(self.open, other.open), is_counted)

    def of(self, length: int) -> int:
        """Return how many there are for a text of some length."""
        return self.choices * math.comb(length + self.open, self.open)


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
                raise self._refused(at, at + 10, 'is not one that RE2 and Python read alike')
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
            group.take(_Ways() if kind == 'one' else None)
        self.in_python.append(r'\Z' if kind == 'end' else token.group())

    def _repeated(self, part: Optional[_Ways], token: re.Match[str]) -> _Ways:
        """Return the ways of a part that is repeated."""
        if part is None:
            raise self._refused(*token.span(), 'repeats nothing')
        if token.group().startswith('?'):
            return part.beside(_Ways())
        least = int(token['least'] or 0)
        most = least if token['comma'] is None else int(token['most'] or MOST_REPEATS)
        is_counted = token['least'] is not None
        if is_counted and (part.is_counted or max(least, most) > MOST_REPEATS):
            text = 'repeats more than %d times, or within another such' % MOST_REPEATS
            raise self._refused(*token.span(), text)
        if not is_counted or (token['comma'] and not token['most']):
            if part != _Ways(is_counted=part.is_counted):
                text = 'repeats what may match in several ways, for which re could take very long'
                raise self._refused(*token.span(), text)
            return _Ways(1, 1, is_counted or part.is_counted)
        choices = max(1, most - least + 1)
        if part.choices > 1 or part.open:
            choices = min((part.choices + 1) ** most, MOST_WAYS + 1)
        return _Ways(choices, part.open * most, is_counted=True)

    def _refused(self, start: int, end: int, what: str) -> ValueError:
        where = 'regular expression %r: %r at %d' % (self.text, self.text[start:end], start)
        return ValueError('%s %s' % (where, what))


class Pattern:
    """An expression that is matched with whole texts.

    Raises: ValueError: it is invalid, or not among those that this broker knows.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > LONGEST:
            wrong = 'a regular expression has %d characters, expected at most %d'
            raise ValueError(wrong % (len(text), LONGEST))
        reader = _Reader(text)
        self._ways = reader.read()
        if self._ways.of(LONGEST_NAME) > MOST_WAYS:
            wrong = (
                'regular expression %r: re could take very long, expected fewer repeats and choices'
            )
            raise ValueError(wrong % text)
        try:
            self._compiled = re.compile(''.join(reader.in_python), re.ASCII)
        except re.error as error:
            raise ValueError('regular expression %r: %s' % (text, error)) from None

    def __repr__(self) -> str:
        return '<Pattern %r>' % self.text

    def matches(self, text: str) -> bool:
        """Return True if the expression matches the whole text; False if that could take long."""
        return self._ways.of(len(text)) <= MOST_WAYS and bool(self._compiled.fullmatch(text))

    def matching(self, texts: Iterable[str]) -> Set[str]:
        """Return the texts that match."""
        return {text for text in texts if self.matches(text)}
