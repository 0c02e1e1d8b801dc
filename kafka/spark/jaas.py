"""A parser for sasl.jaas.config: a Java login module and its options.

It reads ``Class required name="value" ...;`` in the syntax of JAAS configuration files, including
comments and both kinds of quotes. What the modules mean is defined in security_options.py. Errors
show only the class, because all other text may be a secret.
"""

from __future__ import annotations

import re
from typing import Dict, List, Match, NamedTuple, NoReturn

from kafka.config.secrets import Secret
from kafka.errors import InvalidOptionError

__all__ = ['LoginModule', 'parse_jaas']

NAME = 'kafka.sasl.jaas.config'
_FLAGS = ('required', 'requisite', 'sufficient', 'optional')
_CLASS = re.compile(r'[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)*\Z')
_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)"""
    r"""|"(?P<double>(?:[^"\\\n]|\\.)*)"|'(?P<single>(?:[^'\\\n]|\\.)*)'"""
    r"""|(?P<mark>[=;])|(?P<word>[^\s"'=;]+)""",
    re.DOTALL,
)
_ESCAPE = re.compile(r'\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)', re.DOTALL)
_ESCAPED = {'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v'}


class _Token(NamedTuple):
    kind: str  # 'word', 'quoted' or 'mark'
    text: str


class LoginModule(NamedTuple):
    """A Java class for logging in, and its options; all values are treated as secrets."""

    class_name: str
    options: Dict[str, str]

    @property
    def name(self) -> str:
        """The class without its package, which differs if Kafka was shaded."""
        return self.class_name.rpartition('.')[2]


def parse_jaas(text: str) -> LoginModule:
    """Return the one login module that the text names.

    Raises InvalidOptionError for other text, and for more than one module.
    """
    tokens = _tokens(text)
    words = [each.text if each.kind == 'word' else '' for each in tokens]
    marks = [each.text if each.kind == 'mark' else '' for each in tokens]
    if len(tokens) < 2 or not _CLASS.match(words[0]):
        _fail('it must begin with the class of a login module and "required"')
    if words[1].lower() not in _FLAGS:
        _fail('after the class one of %s must follow' % ', '.join(_FLAGS))
    if ';' not in marks:
        _fail('it must end with a semicolon')
    end = marks.index(';')
    if end + 1 != len(tokens):
        _fail('it must contain one login module, not more')
    names, equal, values = tokens[2:end:3], marks[3:end:3], tokens[4:end:3]
    is_whole = len(names) == len(equal) == len(values) and set(equal) <= {'='}
    if not is_whole or any(each.kind == 'mark' for each in [*names, *values]):
        _fail('options must be written name="value"')
    return LoginModule(
        words[0], {name.text: Secret(value.text) for name, value in zip(names, values)}
    )


def _tokens(text: str) -> List[_Token]:
    """Return words, quoted texts and punctuation; whitespace and comments are left out."""
    found: List[_Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            _fail('a quotation mark is not closed')
        at = match.end()
        kind = str(match.lastgroup)
        if kind in ('double', 'single'):
            found.append(_Token('quoted', _ESCAPE.sub(_unescape, match.group(kind))))
        elif kind != 'space':
            found.append(_Token(kind, match.group()))
    return found


def _unescape(match: Match[str]) -> str:
    after = match.group(1)
    if after[0] in '01234567':
        return chr(int(after, 8))
    return _ESCAPED.get(after, after)


def _fail(why: str) -> NoReturn:
    raise InvalidOptionError('%s is invalid: %s' % (NAME, why))
