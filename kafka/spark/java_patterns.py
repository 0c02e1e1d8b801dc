"""A translation of Java's regular expressions, for subscribePattern, into Python's.

For names of topics, which are ASCII and one line. Syntax with the same meaning in both is kept,
syntax that only looks different is rewritten, and syntax that only one of them has, or that means
different things, is refused. Errors that ``re.compile`` finds are errors in Java too.
"""

from __future__ import annotations

import re
import warnings
from typing import Callable, Dict, List, Match, Pattern

__all__ = ['JavaPatternError', 'compile_java']

#: Java's character classes, as they are for ASCII.
_PROPERTIES = {
    'Lower': 'a-z',
    'Upper': 'A-Z',
    'Alpha': 'a-zA-Z',
    'Digit': '0-9',
    'Alnum': 'a-zA-Z0-9',
    'XDigit': '0-9a-fA-F',
    'L': 'a-zA-Z',
    'Lu': 'A-Z',
    'Ll': 'a-z',
    'N': '0-9',
    'Nd': '0-9',
    'IsAlphabetic': 'a-zA-Z',
    'IsDigit': '0-9',
}
_QUANTIFIER = re.compile(r'\{\d{1,9}(,\d{0,9})?\}')
_GROUP = re.compile(r'\((?:\?(?:<([a-zA-Z][a-zA-Z0-9]*)>|(<?[=!]|:|>|[ism]+[:)])))?')
# Escaped letters with the same meaning in both, in sets and outside.
_SAME = 'dDsSwWtnrfa'
_HEX = re.compile(r'x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}')
_PROPERTY = re.compile(r'([pP])(?:\{(\w+)\}|(\w))')
_BACK_NAME = re.compile(r'k<([a-zA-Z][a-zA-Z0-9]*)>')


class JavaPatternError(ValueError):
    """A pattern is invalid, or not supported in Python; the message says where and why."""


def compile_java(text: str) -> Pattern[str]:
    """Return a Python pattern whose search() finds what find() of the Java pattern finds.

    Raises JavaPatternError.
    """
    translated = _Translation(text).result()
    try:
        with warnings.catch_warnings():
            # FutureWarnings about sets: syntax that Java reads differently was refused before.
            warnings.simplefilter('ignore')
            return re.compile(translated, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise JavaPatternError(str(error)) from None


class _Translation:
    """One pass over a pattern."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._out: List[str] = []

    def result(self) -> str:
        """Return the pattern in Python's syntax."""
        steps: Dict[str, Callable[[], None]] = {
            '\\': self._escape,
            '[': self._set,
            '(': self._group,
            '{': self._braces,
        }
        while self._at < len(self._text):
            steps.get(self._text[self._at], self._plain)()
        return ''.join(self._out)

    def _plain(self) -> None:
        self._put(self._text[self._at], 1)

    def _put(self, translated: str, length: int) -> None:
        """Append the translation of a piece and move past the piece."""
        self._out.append(translated)
        self._at += length

    def _fail(self, why: str) -> JavaPatternError:
        return JavaPatternError('%s at position %d' % (why, self._at))

    def _match(self, pattern: Pattern[str], behind: int = 0) -> Match[str]:
        found = pattern.match(self._text, self._at + behind)
        if found is None:
            raise self._fail('%r is not supported' % self._text[self._at : self._at + 8])
        return found

    def _braces(self) -> None:
        """Translate a quantifier, as in a{2,3}; any other brace is an error in Java."""
        found = self._match(_QUANTIFIER)
        self._put(found.group(), len(found.group()))

    def _group(self) -> None:
        found = self._match(_GROUP)
        name, kind = found.groups()
        if name is None and kind is None and self._text.startswith('(?', self._at):
            raise self._fail('%r is not supported' % self._text[self._at : self._at + 8])
        if kind is not None and kind.endswith(')') and self._at:
            raise self._fail('flags are supported at the beginning only, not')
        whole = found.group()
        self._put('(?P<%s>' % name if name else whole, len(whole))

    def _escape(self, is_in_set: bool = False) -> None:
        after = self._text[self._at + 1 : self._at + 2]
        if after == 'Q':
            self._quoted()
        elif after in ('p', 'P'):
            self._property(is_in_set)
        elif after in ('x', 'u'):
            found = self._match(_HEX, 1)
            self._put('\\' + found.group(), 1 + len(found.group()))
        elif is_in_set:
            if after and (after in _SAME or not after.isalnum()):
                self._put('\\' + after, 2)
            else:
                raise self._fail('%r is not supported' % ('\\' + after))
        elif after == 'k':
            name = self._match(_BACK_NAME, 1).group(1)
            self._put('(?P=%s)' % name, len(name) + 4)
        else:
            self._letter(after)

    def _letter(self, after: str) -> None:
        if after in ('z', 'Z'):  # the same in text without line ends
            self._put('\\Z', 2)
        elif after and (after in _SAME or after in 'AbB' or not after.isalnum()):
            self._put('\\' + after, 2)
        elif after in tuple('123456789'):
            self._put('(?:\\%s)' % after, 2)  # Java reads more digits if the group exists
            if self._text[self._at : self._at + 1].isdigit():
                raise self._fail('a group of more than one digit is not supported')
        else:
            raise self._fail('%r is not supported' % ('\\' + after))

    def _quoted(self) -> None:
        begin = self._at + 2
        end = self._text.find('\\E', begin)
        if end < 0:
            end = len(self._text)
        self._put(re.escape(self._text[begin:end]), 2)
        self._at = min(end + 2, len(self._text))

    def _property(self, is_in_set: bool) -> None:
        found = self._match(_PROPERTY, 1)
        negated, long, short = found.groups()
        members = _PROPERTIES.get(long or short)
        if members is None or is_in_set and negated == 'P':
            raise self._fail('%r is not supported' % ('\\' + found.group()))
        sign = '^' * (negated == 'P')
        written = members if is_in_set else '[%s%s]' % (sign, members)
        self._put(written, 1 + len(found.group()))

    def _set(self) -> None:
        """Translate a set, ``[...]``; nested sets and && exist only in Java."""
        begin = '[^' if self._text.startswith('[^', self._at) else '['
        self._put(begin, len(begin))
        if self._text.startswith(']', self._at):
            raise self._fail('an empty set, or an unescaped ],')
        while True:
            each, two = self._text[self._at : self._at + 1], self._text[self._at : self._at + 2]
            if not each:
                raise self._fail('a set without an end')
            if each == '[' or two == '&&':
                raise self._fail('a set in a set is not supported')
            if each == ']':
                return self._plain()
            if two == '\\Q':
                raise self._fail('\\Q in a set is not supported')
            if each == '\\':
                self._escape(is_in_set=True)
            else:
                self._plain()
