"""A parser for sources in which ``async`` and ``await`` are names, as they were before Python 3.7.

Called by ``old_source``. It replaces those tokens that are names by placeholders of the same
length, lets Python parse the result, and renames the placeholders in the tree: the compiler accepts
the words there. All positions therefore match the source, and ``async=True`` is passed as the
keyword argument ``async``.
"""

from __future__ import annotations

import ast
import io
import keyword
import re
import tokenize
from itertools import product
from string import ascii_lowercase
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

WORDS = ('async', 'await')

_KEYWORDS = {*keyword.kwlist, *WORDS}
# Words after which `await` has no operand: there it is an operand itself.
_BETWEEN = {'and', 'as', 'for', 'from', 'if', 'import', 'in', 'is', 'else', 'or'}
_NAMES = {tokenize.NAME, getattr(tokenize, 'ASYNC', None), getattr(tokenize, 'AWAIT', None)}
_SKIPPED = {tokenize.NL, tokenize.COMMENT, tokenize.ENCODING}
_NO_EXPRESSION = {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
_FSTRING_START = getattr(tokenize, 'FSTRING_START', None)  # since Python 3.12
_WORD = re.compile(r'\b(?:async|await)\b')
_F_PREFIX = re.compile(r'[rR]?[fF][rR]?[\'"]')
# The same for the text of an f-string, outside of an async def and in one.
_IN_FSTRING = r'\b(?:async(?!\s+(?:for|with|def)\b)|await(?!\s*(?!(?:%s)\b)%s))\b'
_OPERATORS = '|'.join(sorted(_BETWEEN | {'not'}))
_IN_FSTRINGS = {
    False: re.compile(_IN_FSTRING % (_OPERATORS, r'[\w\'"]')),
    True: re.compile(_IN_FSTRING % (_OPERATORS, r'[\w\'"(\[]')),
}


class Spot(NamedTuple):
    """An occurrence of a word as a name: its line and column, from 0, and the word."""

    row: int
    column: int
    word: str


class _Scopes:
    """Tracks whether a token is inside an ``async def``, where ``await (x)`` is not a call."""

    def __init__(self) -> None:
        self._blocks: List[bool] = [False]  # one for each indentation
        self._header: Optional[bool] = None  # of a function whose block has not begun
        self._brackets = 0  # open ones in the header
        self._in_line = False  # after the header's colon: `async def f(): await x`
        self._after_colon = False

    @property
    def is_async(self) -> bool:
        """Whether the innermost function around the next token is an ``async def``."""
        return bool(self._header) if self._in_line else self._blocks[-1]

    def define(self, is_async: bool) -> None:
        """Enter the header of a ``def``."""
        self._header, self._brackets, self._in_line = is_async, 0, False

    def see(self, token: Any) -> None:
        """Update the state by the next token."""
        if token.type == tokenize.INDENT:
            self._blocks.append(self._blocks[-1] if self._header is None else self._header)
            self._header = None
        elif token.type == tokenize.DEDENT:
            self._blocks.pop()
        elif token.type == tokenize.NEWLINE:
            if self._in_line and not self._after_colon:
                self._header = None  # the function ended in its line
            self._in_line = False
        elif self._header is not None and not self._in_line:
            self._see_header(token.string)
        self._after_colon = token.string == ':'

    def _see_header(self, text: str) -> None:
        if text in ('(', '[', '{'):
            self._brackets += 1
        elif text in (')', ']', '}'):
            self._brackets -= 1
        elif text == ':' and not self._brackets:
            self._in_line = True


def _ends_expression(token: Any) -> bool:
    """Return True if an expression can end with this token, so that no other can follow."""
    if token is None or token.type in _NO_EXPRESSION:
        return False
    if token.type == tokenize.OP:
        return token.string in (')', ']', '}', '...')
    if token.type == tokenize.NAME:
        return token.string not in _KEYWORDS or token.string in ('None', 'True', 'False')
    return True


def _starts_statement(token: Any) -> bool:
    return token is None or token.type in _NO_EXPRESSION


def _is_keyword(token: Any, before: Any, after: Any, in_async_def: bool) -> bool:
    if before is not None and before.string in ('.', 'def', 'class'):
        return False
    if token.string == 'async':
        return _async_is_keyword(before, after)
    return _await_is_keyword(after, in_async_def)


def _async_is_keyword(before: Any, after: Any) -> bool:
    if after.type not in _NAMES:
        return False
    if after.string == 'for':
        # In [async for async in x] it is the element of the list.
        return _starts_statement(before) or _ends_expression(before)
    return after.string in ('def', 'with')


def _await_is_keyword(after: Any, in_async_def: bool) -> bool:
    if after.type in _NAMES:
        # Two names are never adjacent; in `await not in x` the name is followed by `not`.
        return after.string not in _BETWEEN and after.string != 'not'
    if after.type in (tokenize.NUMBER, tokenize.STRING, _FSTRING_START):
        return True
    if after.string in ('(', '['):
        return in_async_def
    return after.string in ('{', '...')


def used_in(text: str) -> bool:
    """Return True if the words occur, as keywords, names or in text."""
    return _WORD.search(text) is not None


def names(text: str) -> List[Spot]:
    """Return the places of `async` and `await` as names, in the order of the source.

    Raises: tokenize.TokenError or SyntaxError if the source is not Python even then.
    """
    spots: List[Spot] = []
    scopes = _Scopes()
    before: Any = None
    for token, after in _with_next(tokenize.generate_tokens(io.StringIO(text).readline)):
        if token.type in _NAMES and token.string in WORDS:
            if not _is_keyword(token, before, after, scopes.is_async):
                spots.append(Spot(token.start[0] - 1, token.start[1], token.string))
        elif token.type in _NAMES and token.string == 'def':
            scopes.define(before is not None and before.string == 'async')
        elif token.type == tokenize.STRING and _F_PREFIX.match(token.string):
            spots += _spots_in_fstring(token, scopes.is_async)
        scopes.see(token)
        before = token
    return spots


def _with_next(tokens: Iterator[Any]) -> Iterator[Tuple[Any, Any]]:
    """Yield each significant token, except the last, with the one that follows it."""
    waiting = None
    for token in tokens:
        if token.type not in _SKIPPED:
            if waiting is not None:
                yield waiting, token
            waiting = token


def _spots_in_fstring(token: Any, in_async_def: bool) -> Iterator[Spot]:
    """Yield the words of an f-string, which is one token before Python 3.12.

    Those outside of its braces are included: their placeholders are renamed in the tree.
    """
    for found in _IN_FSTRINGS[in_async_def].finditer(token.string):
        ahead = token.string[: found.start()]
        lines = ahead.count('\n')
        column = len(ahead) - (ahead.rfind('\n') + 1)
        row = token.start[0] - 1 + lines
        yield Spot(row, column if lines else token.start[1] + column, found.group())


def _placeholders(text: str) -> Dict[str, str]:
    """Return a name for each of the words, as long as it and nowhere in the text."""
    free = (
        name
        for letters in product(ascii_lowercase, repeat=4)
        for name in ['q' + ''.join(letters)]
        if name not in text and not keyword.iskeyword(name)
    )
    return {word: next(free) for word in WORDS}


def _exchanged(text: str, spots: List[Spot], placeholders: Dict[str, str]) -> str:
    lines = list(io.StringIO(text))
    for row, column, word in reversed(spots):
        line = lines[row]
        if line[column : column + len(word)] != word:
            raise SyntaxError('line %d cannot be read' % (row + 1))
        lines[row] = line[:column] + placeholders[word] + line[column + len(word) :]
    return ''.join(lines)


def parse(text: str, filename: str) -> ast.Module:
    """Return the tree of a source in which `async` and `await` may be names.

    Arguments: text: the source, its lines ended by newlines only; filename: for errors.
    Raises: SyntaxError, with the text of the file in it, if the source is not Python 3 even then.
    """
    if not used_in(text):
        return ast.parse(text, filename)
    placeholders = _placeholders(text)
    try:
        tree = ast.parse(_exchanged(text, names(text), placeholders), filename)
    except tokenize.TokenError as error:
        row, column = error.args[1]
        line = dict(enumerate(io.StringIO(text), 1)).get(row)
        raise SyntaxError(error.args[0], (filename, row, column, line)) from None
    except SyntaxError as error:
        error.filename = filename
        for word, placeholder in placeholders.items():
            error.msg = error.msg.replace(placeholder, word)
            error.text = error.text and error.text.replace(placeholder, word)
        raise
    _rename(tree, {placeholder: word for word, placeholder in placeholders.items()})
    return tree


def _rename(tree: ast.AST, words: Dict[str, str]) -> None:
    """Rename the placeholders in a tree to the words that they replace."""
    pattern = re.compile('|'.join(words))

    def restored(value: Any) -> Any:
        if isinstance(value, str):
            return pattern.sub(lambda found: words[found.group()], value)
        if isinstance(value, list) and value and isinstance(value[0], str):
            return [restored(item) for item in value]
        return value

    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            # The text of an f-string may contain placeholders: before 3.12 anywhere, since then in
            # {x=}.
            for part in node.values:
                if isinstance(part, ast.Constant):
                    part.value = restored(part.value)
        elif not isinstance(node, ast.Constant):
            for field, value in ast.iter_fields(node):
                setattr(node, field, restored(value))
