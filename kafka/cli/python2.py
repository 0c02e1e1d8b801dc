"""A parser for sources of Python 2, by the optional translator fissix (extra ``py2``).

fissix changes single lines but may also insert some (imports, unpacked parameters): the tree of the
translated text gets the line numbers of the file. Columns are kept where a line was not changed,
and are absent elsewhere, so that no traceback points to a wrong place. What fissix omits and can be
expressed in the tree is added by ``python2_meaning``.
"""

from __future__ import annotations

import ast
import io
import logging
import re
import tempfile
from pathlib import Path
from typing import Any, Dict, List, NoReturn, Set, Tuple

from kafka.cli import async_names, python2_meaning

try:
    import fissix

    try:
        from fissix import refactor
    except OSError:
        # fissix stores tables in the user's cache directory, which users of daemons do not have.
        with tempfile.TemporaryDirectory() as directory:
            fissix.CACHE_DIR = Path(directory)
            from fissix import refactor
    from fissix.pgen2 import parse as fissix_parse
    from fissix.pgen2 import tokenize as fissix_tokenize
except ImportError:
    refactor = None

log = logging.getLogger(__name__)

INSTALL = 'pip install kafka-evergreen[py2]'

# Syntax that only Python 2 accepts, searched in the line of an error.
_MARKS = re.compile(
    r'(?:^|[:;])\s*(?:print|exec)\b(?!\s*[=(,.;:]|\s*$)'
    r'|\bexcept\b[^:]*,\s*\w+\s*:'
    r'|\braise\s+[\w.]+\s*,'
    r'|`.*`|<>'
    r'|\b0[0-7]+\b|\b(?:0[xX][0-9a-fA-F]+|\d+)[lL]\b'
    r'|\b[uU][rR][\'"]'
    r'|\bdef\s+\w+\s*\((?:[^()]*,)?\s*\(|\blambda\b[^:]*\('
)
_NOTE = re.compile(r'Line (\d+): (.*)', re.DOTALL)

# Names of Python 2 that fissix translates only in calls, or not at all.
_GONE = {
    'apply', 'basestring', 'buffer', 'cmp', 'coerce', 'execfile', 'file', 'intern', 'long',
    'raw_input', 'reduce', 'reload', 'unichr', 'unicode', 'xrange',
}  # fmt: skip

# The fixer that makes imports relative, which only a module of a package may do.
_FOR_PACKAGES = 'fissix.fixes.fix_import'


def parse(text: str, filename: str, complaint: SyntaxError, in_package: bool) -> ast.Module:
    """Return the tree of a source of Python 2.

    Arguments: text: the source, its lines ended by newlines only; filename: its origin;
        complaint: the error of today's Python; in_package: whether imports are searched in the
        directory of the file first.
    Raises: SyntaxError: the complaint if it is not Python 2 either; otherwise one that names what
        cannot be translated, or the extra that is not installed.
    """
    # Other separators than newlines, such as form feeds, do not end lines of a source.
    lines = text.split('\n')
    is_old = isinstance(complaint, TabError) or _looks_old(complaint, lines)
    if refactor is None:
        if is_old:
            _refuse(complaint, 'this is Python 2, which needs: ' + INSTALL, lines)
        raise complaint
    try:
        translated, origins, notes = _translate(text, filename, in_package)
    except Exception as error:
        if is_old:
            _refuse(_located(error, filename), 'Python 2 that cannot be translated', lines)
        raise complaint from None
    if translated.rstrip('\n') == text.rstrip('\n') and not isinstance(complaint, TabError):
        raise complaint
    try:
        tree = _parse_translated(translated, filename)
    except SyntaxError as error:
        if error.lineno:
            error.lineno = origins[min(error.lineno, len(origins) - 1)]
        reasons = ''.join('; ' + reason for line, reason in notes if line == error.lineno)
        _refuse(error, 'Python 2 that cannot be translated' + reasons, lines)
    for line, reason in sorted(notes + _names_gone(tree, origins)):
        log.warning('%s, line %d: translated from Python 2: %s', filename, line, reason)
    tree = python2_meaning.restore(tree, text)
    _move(tree, origins, _unchanged(translated.split('\n'), lines, origins))
    return tree


def _looks_old(complaint: SyntaxError, lines: List[str]) -> bool:
    """Return True if a line that Python rejects has syntax that only Python 2 accepts."""
    row = complaint.lineno or 0
    return any(_MARKS.search(line) for line in lines[max(row - 1, 0) : row])


def _refuse(error: SyntaxError, why: str, lines: List[str]) -> NoReturn:
    """Raise an error at the same place of the file, with the reason in its message."""
    row = error.lineno or 1
    line = lines[row - 1] if row <= len(lines) else ''
    # The column is that of the compiled text, which may differ from the file's.
    column = error.offset if error.text and error.text.rstrip('\n') == line else None
    refusal = SyntaxError(error.msg, (error.filename, row, column, line + '\n'))
    # Set afterwards: before 3.10 the constructor changes messages about print statements.
    refusal.msg = '%s (%s)' % (error.msg, why)
    raise refusal from None


def _located(error: Any, filename: str) -> SyntaxError:
    """Return a message or a failure of the translator as a SyntaxError."""
    message, row = '%s in the translator: %s' % (type(error).__name__, error), None
    if isinstance(error, SyntaxError):
        message, row = error.msg, error.lineno
    elif isinstance(error, fissix_parse.ParseError):
        message, row = '%s: %r' % (error.msg, error.value), error.context[1][0]
    elif isinstance(error, fissix_tokenize.TokenError):
        message, row = error.args[0], error.args[1][0]
    return SyntaxError(message, (filename, row, None, None))


def _translate(
    text: str, filename: str, in_package: bool
) -> Tuple[str, List[int], List[Tuple[int, str]]]:
    """Translate a source.

    Returns: the text; for each of its lines, counted from 1, the line of the file; and the
    messages of the translator, with lines of the file.
    """
    fixers = [
        name
        for name in refactor.get_fixers_from_package('fissix.fixes')
        if in_package or name != _FOR_PACKAGES
    ]
    tool = refactor.RefactoringTool(fixers)
    tree = tool.refactor_string(text.rstrip('\n') + '\n', filename)
    return str(tree), _origins(tree), _notes(tool.fixer_log)


def _notes(fixer_log: List[str]) -> List[Tuple[int, str]]:
    """Return (line, message) of a log in which reasons may follow what they explain."""
    notes: List[Tuple[int, str]] = []
    for message in fixer_log:
        found = _NOTE.match(message)
        if found:
            notes.append((int(found.group(1)), found.group(2).strip()))
        elif notes:
            notes[-1] = (notes[-1][0], '%s: %s' % (notes[-1][1], message))
    return notes


def _names_gone(tree: ast.Module, origins: List[int]) -> List[Tuple[int, str]]:
    """Return (line, message) of names in a translated source that Python 3 does not have."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    own = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    own.update(getattr(node, 'name', '') or '' for node in ast.walk(tree))
    own.update(node.arg for node in ast.walk(tree) if isinstance(node, ast.arg))
    own.update(
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    )
    return [
        (origins[node.lineno], '%s does not exist in Python 3' % node.id)
        for node in names
        if node.id in _GONE - own
    ]


def _origins(tree: Any) -> List[int]:
    """Return the line of the file for each line of a translated text, counted from 1.

    Leaves that were kept have their line numbers; a line without any of these was inserted, and has
    the number of the line before it.
    """
    known: Dict[int, int] = {}
    row = 1
    for leaf in tree.leaves():
        row += leaf.prefix.count('\n')
        value = str(leaf.value)  # fixers may have set a number
        if value and leaf.lineno:
            known.setdefault(row, leaf.lineno)
        row += value.count('\n')
    origins = [1]
    for number in range(1, row + 1):
        origins.append(max(known.get(number, 1), origins[-1]))
    return origins


def _parse_translated(text: str, filename: str) -> ast.Module:
    """Parse the output of the translator, in which tabs may still mean eight spaces."""
    try:
        return async_names.parse(text, filename)
    except TabError:
        return async_names.parse(_without_tabs(text), filename)


def _without_tabs(text: str) -> str:
    """Return a source with its indentation in spaces, tabs counted as in Python 2."""
    within_strings: Set[int] = set()
    lines = list(io.StringIO(text))
    for token in fissix_tokenize.generate_tokens(iter(lines + ['']).__next__):
        if token[0] == fissix_tokenize.STRING:
            within_strings.update(range(token[2][0], token[3][0]))
    for row, line in enumerate(lines):
        if row not in within_strings:
            rest = line.lstrip(' \t')
            lines[row] = line[: len(line) - len(rest)].expandtabs(8) + rest
    return ''.join(lines)


def _unchanged(translated: List[str], lines: List[str], origins: List[int]) -> List[bool]:
    """Return for each line of the translated text, counted from 1, whether it is unchanged."""
    same = [False]
    for row, line in enumerate(translated, 1):
        same.append(origins[row] <= len(lines) and lines[origins[row] - 1] == line)
    return [*same, False]


def _move(tree: ast.AST, origins: List[int], unchanged: List[bool]) -> None:
    """Set the lines of a tree's nodes to those of the file; remove columns of changed lines."""
    for node in ast.walk(tree):
        place: Any = node
        if not hasattr(place, 'lineno'):
            continue
        if not (unchanged[place.lineno] and unchanged[place.end_lineno]):
            place.col_offset = place.end_col_offset = -1
        place.lineno = origins[place.lineno]
        place.end_lineno = origins[place.end_lineno]
