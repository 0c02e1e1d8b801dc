"""Code objects of sources that today's Python does not compile as they are.

Owns the order of what is tried: the names ``async`` and ``await`` first (``async_names``), then a
translation from Python 2 (``python2``). A source that compiles as it is must not come here: nothing
about it may change.
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

    Arguments: source: bytes as they stand in the file, or text; filename: what tracebacks show;
        in_package: whether Python 2 would look for imports beside the file first, as it does in
        modules of a package; optimize: as compile() takes it.
    Raises: SyntaxError for what is neither; ValueError for a source with null bytes.
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

    That is the given one for a source which is no older Python either. Arguments: as compile_source
    has them.
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
        # Raised by whoever called, it is to show nothing of what was tried here.
        given = found is error
        found.__traceback__ = traceback if given else None
        found.__context__ = context if given else None
        if not found.text and found.lineno:  # the compiler's, which saw the tree only
            found.text = dict(enumerate(io.StringIO(text), 1)).get(found.lineno)
        return found
    except ValueError:  # null bytes, whatever the rest says
        return error


def _any(tree: ast.Module) -> Any:
    """Hide a tree's type: not every version's stubs of compile() know that it takes one."""
    return tree


def _tree(text: str, filename: str, error: SyntaxError, in_package: bool) -> ast.Module:
    """Return the tree of a source that is not today's Python; raise SyntaxError, maybe `error`."""
    try:
        return async_names.parse(text, filename)
    except SyntaxError as found:
        # The first complaint is the better one, unless it is about the names that are none now.
        complaint = found if async_names.used_in(text) else error
    from kafka.cli import python2

    return python2.parse(text, filename, complaint, in_package)
