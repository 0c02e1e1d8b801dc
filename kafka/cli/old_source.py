"""Code objects of sources that today's Python does not compile unchanged.

Tries ``async`` and ``await`` as names first (``async_names``), then a translation from Python 2
(``python2``). Not for sources that compile unchanged: these must stay as they are.
"""

from __future__ import annotations

import ast
import importlib.util
import io
from types import CodeType
from typing import Any, Union

from kafka.cli import async_names


def compile_source(
    source: Union[bytes, str], filename: str, in_package: bool = False, optimize: int = -1
) -> CodeType:
    """Return the code of a module, of today's Python or of an older one.

    Arguments: source: bytes of the file, or text; filename: for tracebacks; in_package: whether
        Python 2 would look for imports in the directory of the file first, as it does in modules of
        a package; optimize: as for compile().
    Raises: SyntaxError if it is neither; ValueError for a source with null bytes.
    """
    try:
        return compile(source, filename, 'exec', dont_inherit=True, optimize=optimize)
    except SyntaxError as error:
        outcome = rescue(source, filename, error, in_package, optimize)
        if outcome is error:
            raise
    if isinstance(outcome, SyntaxError):
        raise outcome
    return outcome


def rescue(
    source: Union[bytes, str],
    filename: str,
    error: SyntaxError,
    in_package: bool = False,
    optimize: int = -1,
) -> Union[CodeType, SyntaxError]:
    """Return the code of a source that compile() refused with an error, or the error to raise.

    That is the given error if the source is not one of an older Python either. Arguments: as for
    compile_source.
    """
    traceback, context = error.__traceback__, error.__context__
    try:
        text = importlib.util.decode_source(source) if isinstance(source, bytes) else source
    except (SyntaxError, UnicodeError):
        return error
    try:
        tree = _tree(text, filename, error, in_package)
        return compile(_any(tree), filename, 'exec', dont_inherit=True, optimize=optimize)
    except SyntaxError as found:
        # The caller raises it: it must not show the attempts made here as its context.
        given = found is error
        found.__traceback__ = traceback if given else None
        found.__context__ = context if given else None
        if not found.text and found.lineno:  # the compiler's, which saw the tree only
            found.text = dict(enumerate(io.StringIO(text), 1)).get(found.lineno)
        return found
    except ValueError:  # null bytes: the given error is the right one
        return error


def _any(tree: ast.Module) -> Any:
    """Return a tree as Any: the stubs of compile() lack it in some versions."""
    return tree


def _tree(text: str, filename: str, error: SyntaxError, in_package: bool) -> ast.Module:
    """Return the tree of an older source; raise SyntaxError, which may be `error`."""
    try:
        return async_names.parse(text, filename)
    except SyntaxError as found:
        # The error of the compiler is better, unless the words async and await may be its cause.
        complaint = found if async_names.used_in(text) else error
    from kafka.cli import python2

    return python2.parse(text, filename, complaint, in_package)
