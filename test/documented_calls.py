"""What the tables of documented names are checked with: paths, and calls as they are written."""

from __future__ import annotations

import importlib
import inspect
import re


def find(path):
    """Return what a dotted path means: modules as far as there are any, then attributes."""
    words = path.split('.')
    for count in range(len(words), 0, -1):
        try:
            found = importlib.import_module('.'.join(words[:count]))
        except ModuleNotFoundError:
            continue
        for name in words[count:]:
            found = getattr(found, name)
        return found
    raise AssertionError(path)


def check_call(line):
    """Compare a call with the object of its path.

    Names, order and defaults are the document's; more arguments may follow, none is needed.
    """
    path, arguments = re.fullmatch(r'([\w.]+)\((.*)\)', line).groups()
    documented = eval('inspect.signature(lambda %s: 0)' % arguments, {'inspect': inspect})
    found = find(path)
    mine = list(inspect.signature(found).parameters.values())
    if inspect.isclass(found) and inspect.isfunction(vars(found).get('__init__')):
        # On Python 3.8 the class itself shows what Generic makes of it.
        mine = list(inspect.signature(found.__init__).parameters.values())[1:]
    owner = find(path.rpartition('.')[0])
    stored = vars(owner).get(path.rpartition('.')[2])
    if inspect.isclass(owner) and inspect.isfunction(found) and type(stored) is not staticmethod:
        mine = mine[1:]  # self
    fixed = [p for p in documented.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    same = mine[: len(fixed)]
    assert [p.name for p in same] == [p.name for p in fixed]
    assert [_plain(p.default) for p in same if p.name != 'hosts'] == [
        _plain(p.default) for p in fixed if p.name != 'hosts'
    ]
    left = mine[len(fixed) :]
    for p in documented.parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            assert any(q.kind is p.kind for q in left), p
    assert all(
        q.default is not q.empty or q.kind in (q.VAR_POSITIONAL, q.VAR_KEYWORD) for q in left
    )


def _plain(default):
    """Return a default as a program meets it: an empty tuple and an empty list are both nothing."""
    return [] if default == () else default
