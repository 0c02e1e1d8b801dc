"""The semantics of Python 2 beyond its syntax, added to the tree of a translated source.

Programs of that time rely on two things that fissix does not translate: the division of whole
numbers, and ``sys.setdefaultencoding()`` after ``reload(sys)``, which has no effect where text is
not bytes.
"""

from __future__ import annotations

import ast
import copy
import operator
import re
from typing import Any

# The name of `divide` in a module; names that end in underscores are never mangled.
_NAME = '__kafka_divide__'
_TRUE_DIVISION = re.compile(
    r'^\s*from\s+__future__\s+import\s*(?:\([^)]*\bdivision\b|[^\n(]*\bdivision\b)', re.MULTILINE
)
_ENCODING_CALLS = {'sys.setdefaultencoding', 'importlib.reload', 'imp.reload', 'reload'}


def divide(dividend: Any, divisor: Any) -> Any:
    """Divide as in Python 2: the quotient of whole numbers is rounded down to a whole number."""
    if isinstance(dividend, int) and isinstance(divisor, int):
        return dividend // divisor
    return operator.truediv(dividend, divisor)


def restore(tree: ast.Module, text: str) -> ast.Module:
    """Return a translated tree with the semantics of its source, whose text is given as well."""
    meaning = _Meaning(_TRUE_DIVISION.search(text) is not None)
    tree = meaning.visit(tree)
    if meaning.divides:
        _import_divide(tree)
    return ast.fix_missing_locations(tree)


def _import_divide(tree: ast.Module) -> None:
    """Insert the import, after the docstring if there is one."""
    statement = ast.ImportFrom(
        module=__name__, names=[ast.alias(name='divide', asname=_NAME)], level=0
    )
    ast.copy_location(statement, tree.body[0])
    # The translator removes all imports from __future__, which would have to come first.
    place = 0 if ast.get_docstring(tree, clean=False) is None else 1
    tree.body.insert(place, statement)


class _Meaning(ast.NodeTransformer):
    """Replaces divisions by calls of `divide`, and removes calls that set the default encoding."""

    def __init__(self, true_division: bool) -> None:
        self.true_division = true_division
        self.divides = False

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Replace ``a / b``."""
        self.generic_visit(node)
        if self.true_division or not isinstance(node.op, ast.Div):
            return node
        return self._call(node, node.left, node.right)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """Replace ``a /= b`` if `a` can be evaluated twice without a difference."""
        self.generic_visit(node)
        if self.true_division or not isinstance(node.op, ast.Div) or not _is_plain(node.target):
            return node
        left: Any = copy.deepcopy(node.target)
        left.ctx = ast.Load()
        value = self._call(node, left, node.value)
        return ast.copy_location(ast.Assign(targets=[node.target], value=value), node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """Remove ``reload(sys)`` and ``sys.setdefaultencoding(...)``."""
        self.generic_visit(node)
        call = node.value
        if not isinstance(call, ast.Call) or _dotted(call.func) not in _ENCODING_CALLS:
            return node
        if _dotted(call.func).endswith('reload') and [_dotted(a) for a in call.args] != ['sys']:
            return node
        return ast.copy_location(ast.Pass(), node)

    def _call(self, place: ast.AST, left: ast.expr, right: ast.expr) -> ast.Call:
        self.divides = True
        function = ast.copy_location(ast.Name(_NAME, ast.Load()), place)
        return ast.copy_location(ast.Call(func=function, args=[left, right], keywords=[]), place)


def _is_plain(target: ast.AST) -> bool:
    """Return True if evaluating a target has no effect: names, their attributes and items."""
    if isinstance(target, ast.Attribute):
        return _is_plain(target.value)
    if isinstance(target, ast.Subscript):
        index = getattr(target.slice, 'value', target.slice)  # wrapped in an Index before 3.9
        return _is_plain(target.value) and (
            _is_plain(target.slice) or isinstance(index, (str, int, ast.Constant, ast.Name))
        )
    return isinstance(target, (ast.Name, ast.Constant))


def _dotted(node: ast.AST) -> str:
    """Return a dotted name as it is written; empty for any other expression."""
    if isinstance(node, ast.Attribute):
        return '%s.%s' % (_dotted(node.value), node.attr)
    return node.id if isinstance(node, ast.Name) else ''
