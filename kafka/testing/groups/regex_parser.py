"""A parser of regular expressions in the syntax of RE2 (KIP-848, KIP-1152).

Accepts what brokers accept, which use RE2J, except that categories (``\\p{Lu}``) are known and
scripts (``\\p{Greek}``) are not. The expressions are matched by
:mod:`kafka.testing.groups.regex`. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Callable, FrozenSet, List, NamedTuple, Optional, Tuple, Union

LONGEST = 20000
#: Groups nested deeper are refused; RE2 allows 1000.
DEEPEST = 100
#: As in RE2.
MOST_REPEATS = 1000

Test = Callable[[str], bool]


class One(NamedTuple):
    """A character that passes a test."""

    test: Test


class Place(NamedTuple):
    """A place: ``^`` and ``$`` of a line, ``A`` and ``z`` of the text, ``b`` and ``B`` of words."""

    kind: str


class Sequence(NamedTuple):
    """Parts one after another."""

    parts: Tuple[Node, ...]


class Choice(NamedTuple):
    """A choice between parts."""

    parts: Tuple[Node, ...]


class Repeat(NamedTuple):
    """A part repeated ``least`` to ``most`` times; ``most`` is None for no limit."""

    part: Node
    least: int
    most: Optional[int]


Node = Union[One, Place, Sequence, Choice, Repeat]

_REPEAT = re.compile(r'\{(\d+)(?:(,)(\d*))?\}', re.ASCII)
_GROUP = re.compile(r'\((?:\?(?:P?<(?P<name>\w+)>|(?P<flags>[imsU]*(?:-[imsU]+)?)(?P<end>[:)])))?')
_POSIX = re.compile(r'\[:(\^?)([a-z]+):\]')
_HEX = re.compile(r'x(?:\{([0-9A-Fa-f]{1,6})\}|([0-9A-Fa-f]{2}))')
_OCTAL = re.compile(r'0[0-7]{0,2}|[1-7][0-7]{1,2}')
_CATEGORY = re.compile(r'([pP])(?:\{(\^?)(\w+)\}|(\w))', re.ASCII)
_CONTROLS = {'a': '\a', 'f': '\f', 't': '\t', 'n': '\n', 'r': '\r', 'v': '\v'}

_DIGITS = frozenset('0123456789')
_LOWER = frozenset('abcdefghijklmnopqrstuvwxyz')
_UPPER = frozenset('ABCDEFGHIJKLMNOPQRSTUVWXYZ')
WORD = _DIGITS | _LOWER | _UPPER | {'_'}
_PERL = {'d': _DIGITS, 'w': WORD, 's': frozenset('\t\n\f\r ')}
_ASCII = frozenset(map(chr, range(128)))
_GRAPH = frozenset(map(chr, range(33, 127)))
_CLASSES = {
    'alnum': _DIGITS | _LOWER | _UPPER,
    'alpha': _LOWER | _UPPER,
    'ascii': _ASCII,
    'blank': frozenset('\t '),
    'cntrl': _ASCII - _GRAPH - {' '},
    'digit': _DIGITS,
    'graph': _GRAPH,
    'lower': _LOWER,
    'print': _GRAPH | {' '},
    'punct': _GRAPH - _DIGITS - _LOWER - _UPPER,
    'space': frozenset('\t\n\v\f\r '),
    'upper': _UPPER,
    'word': WORD,
    'xdigit': _DIGITS | frozenset('abcdefABCDEF'),
}
_CATEGORIES = frozenset(
    'C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So'
    ' Z Zl Zp Zs'.split()
)


def parse(text: str) -> Node:
    """Return the tree of an expression. Raises ValueError with the reason if it is invalid."""
    if len(text) > LONGEST:
        raise ValueError('an expression of %d characters' % len(text))
    parser = _Parser(text)
    node = parser.choice(frozenset(), 0)
    if parser.pos < len(text):
        raise ValueError('unexpected )')
    return node


def _is_in(characters: FrozenSet[str]) -> Test:
    return characters.__contains__


def _is_not(test: Test) -> Test:
    return lambda character: not test(character)


def _is_between(first: str, last: str) -> Test:
    return lambda character: first <= character <= last


def _is_any(tests: List[Test]) -> Test:
    return lambda character: any(test(character) for test in tests)


def _folded(test: Test) -> Test:
    """Return a test that ignores case."""
    return lambda c: test(c) or test(c.lower()) or test(c.upper())


def _everything(_: str) -> bool:
    return True


def _no_newline(character: str) -> bool:
    return character != '\n'


class _Parser:
    """The parser of one expression; ``pos`` is its position."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.pos = 0

    def _next(self) -> str:
        """Return the character at the position, '' at the end."""
        return self._text[self.pos : self.pos + 1]

    def _taken(self, pattern: re.Pattern[str]) -> Optional[re.Match[str]]:
        found = pattern.match(self._text, self.pos)
        if found is not None:
            self.pos = found.end()
        return found

    def choice(self, flags: FrozenSet[str], depth: int) -> Node:
        """Parse up to the end of a group or of the text."""
        if depth > DEEPEST:
            raise ValueError('groups are nested too deeply')
        choices: List[Node] = []
        parts: List[Node] = []
        while self._next() not in ('', ')'):
            if self._next() == '|':
                self.pos += 1
                choices.append(Sequence(tuple(parts)))
                parts = []
            elif self._next() == '(':
                flags = self._group(parts, flags, depth)
            elif self._text.startswith('\\Q', self.pos):
                quoted, _, _ = self._text[self.pos + 2 :].partition('\\E')
                self.pos = min(len(self._text), self.pos + 4 + len(quoted))
                parts += [self._one(frozenset(c), flags) for c in quoted]
            else:
                parts.append(self._atom(flags))
            self._repeat(parts)
        choices.append(Sequence(tuple(parts)))
        return choices[0] if len(choices) == 1 else Choice(tuple(choices))

    def _group(self, parts: List[Node], flags: FrozenSet[str], depth: int) -> FrozenSet[str]:
        """Parse a group; return the flags that hold after it."""
        found = self._taken(_GROUP)
        if found is None or self._text.startswith('(?', found.start()) and found.group() == '(':
            raise ValueError('no group that RE2 has')
        inner = flags
        if found.group('end'):
            added, _, removed = found.group('flags').partition('-')
            inner = (flags | set(added)) - set(removed)
            if found.group('end') == ')':
                self._refuse_repeat()
                return inner
        parts.append(self.choice(inner, depth + 1))
        if self._next() != ')':
            raise ValueError('missing )')
        self.pos += 1
        return flags

    def _repeat(self, parts: List[Node]) -> None:
        """Parse the repetition of the last part, if there is one."""
        character = self._next()
        found = self._taken(_REPEAT) if character == '{' else None
        if found is not None:
            least = int(found.group(1)[:9])
            most = int(found.group(3)[:9]) if found.group(3) else None if found.group(2) else least
            if max(least, most or 0) > MOST_REPEATS or most is not None and most < least:
                raise ValueError('invalid repeat count %s' % found.group())
        elif character and character in '*+?':
            self.pos += 1
            least, most = int(character == '+'), 1 if character == '?' else None
        else:
            return
        if not parts:
            raise ValueError('nothing to repeat')
        if self._next() == '?':  # a lazy repetition matches the same texts
            self.pos += 1
        self._refuse_repeat()
        parts[-1] = Repeat(parts[-1], least, most)

    def _refuse_repeat(self) -> None:
        if self._next() and self._next() in '*+?' or _REPEAT.match(self._text, self.pos):
            raise ValueError('nothing to repeat')

    def _atom(self, flags: FrozenSet[str]) -> Node:
        """Parse a character, a class, an escape or a place."""
        character = self._next()
        self.pos += 1
        if character == '.':
            return One(_everything if 's' in flags else _no_newline)
        if character == '^':
            return Place('^' if 'm' in flags else 'A')
        if character == '$':
            return Place('$' if 'm' in flags else 'z')
        if character == '[':
            return One(self._class(flags))
        if character == '\\':
            if self._next() and self._next() in 'AzbB':
                self.pos += 1
                return Place(self._text[self.pos - 1])
            return self._in_case(self._escape(), flags)
        if character in '*+?':
            raise ValueError('nothing to repeat')
        return self._one(frozenset(character), flags)

    def _one(self, characters: FrozenSet[str], flags: FrozenSet[str]) -> One:
        return self._in_case(_is_in(characters), flags)

    def _in_case(self, test: Test, flags: FrozenSet[str]) -> One:
        return One(_folded(test) if 'i' in flags else test)

    def _escape(self) -> Test:
        """Parse an escape of a set of characters, after the backslash."""
        character = self._next()
        if character and character in 'dwsDWS':
            self.pos += 1
            test = _is_in(_PERL[character.lower()])
            return _is_not(test) if character.isupper() else test
        found = self._taken(_CATEGORY)
        if found is not None:
            name = found.group(3) or found.group(4)
            if name not in _CATEGORIES and name != 'Any':
                raise ValueError('no category %s' % name)
            prefix = '' if name == 'Any' else name
            is_negative = (found.group(1) == 'P') != bool(found.group(2))
            return lambda c: unicodedata.category(c).startswith(prefix) != is_negative
        return _is_in(frozenset(self._escaped()))

    def _escaped(self) -> str:
        """Parse an escape of one character, after the backslash."""
        found = self._taken(_HEX)
        if found is not None:
            code = int(found.group(1) or found.group(2), 16)
            if code > 0x10FFFF:
                raise ValueError('no character %s' % found.group())
            return chr(code)
        found = self._taken(_OCTAL)
        if found is not None:
            return chr(int(found.group(), 8))
        character = self._next()
        self.pos += 1
        if character in _CONTROLS:
            return _CONTROLS[character]
        if not character or character in WORD:
            raise ValueError('no escape \\%s' % character)
        return character

    def _class(self, flags: FrozenSet[str]) -> Test:
        """Parse a class of characters, after its opening bracket."""
        is_negative = self._next() == '^'
        self.pos += is_negative
        tests: List[Test] = []
        start = self.pos
        while self._next() != ']' or self.pos == start:
            if not self._next():
                raise ValueError('missing ]')
            tests.append(self._member())
        self.pos += 1
        test = self._in_case(_is_any(tests), flags).test
        return _is_not(test) if is_negative else test

    def _member(self) -> Test:
        """Parse one member of a class: a name, an escape, a character or a range."""
        found = self._taken(_POSIX)
        if found is not None:
            if found.group(2) not in _CLASSES:
                raise ValueError('no class %s' % found.group())
            test = _is_in(_CLASSES[found.group(2)])
            return _is_not(test) if found.group(1) else test
        if self._text.startswith('\\', self.pos) and self._text[self.pos + 1 : self.pos + 2] in (
            *'dwsDWSpP',
        ):
            self.pos += 1
            return self._escape()
        first = self._edge()
        if self._next() != '-' or self._text.startswith('-]', self.pos):
            return _is_in(frozenset(first))
        self.pos += 1
        last = self._edge()
        if last < first:
            raise ValueError('invalid range %s-%s' % (first, last))
        return _is_between(first, last)

    def _edge(self) -> str:
        character = self._next()
        if not character:
            raise ValueError('missing ]')
        self.pos += 1
        return self._escaped() if character == '\\' else character
