"""kafka.cli.python2_meaning: division of whole numbers, and the default encoding that is none."""

from __future__ import annotations

import ast
from fractions import Fraction

import pytest

from kafka.cli import python2_meaning


def run(source, text='', **names):
    tree = python2_meaning.restore(ast.parse(source), text)
    exec(compile(tree, 'x.py', 'exec'), names)
    return names


@pytest.mark.parametrize(
    'dividend, divisor, quotient',
    [(7, 2, 3), (-7, 2, -4), (7, -2, -4), (7.0, 2, 3.5), (7, 2.0, 3.5), (True, 2, 0), (6, 3, 2)],
)
def test_whole_numbers_have_a_whole_quotient(dividend, divisor, quotient):
    found = run('x = a / b', a=dividend, b=divisor)['x']
    assert (found, type(found)) == (quotient, type(quotient))


def test_other_types_divide_as_they_define_it():
    assert run('x = a / b', a=Fraction(7), b=2)['x'] == Fraction(7, 2)
    with pytest.raises(TypeError, match=r'unsupported operand type\(s\) for /'):
        run('x = "a" / 2')
    with pytest.raises(ZeroDivisionError):
        run('x = 1 / 0')


class Plain:
    n = 9


@pytest.mark.parametrize(
    'source, found',
    [
        ('x = 9\nx /= 2', 4),
        ('o = Plain()\no.n /= 2\nx = o.n', 4),
        ('o = [9]\no[0] /= 2\nx = o[0]', 4),
        ('o = {"a": [Plain()]}\ni = 0\no["a"][i].n /= 2\nx = o["a"][0].n', 4),
        ('x = (7 + 2) / 2 / (1 / 1)', 4),
        ('x = [n / 2 for n in [9]][0]', 4),
        (
            'class C:\n    x = 9 / 2\n    def __f(self): return 5 / 2\n    y = __f\nx = C().y()',
            2,
        ),
        ('x = 9 // 2', 4),
    ],
)
def test_divisions_are_found_wherever_they_stand(source, found):
    assert run(source, Plain=Plain)['x'] == found


def test_a_target_with_effects_is_evaluated_once():
    names = run('calls = []\ndef f():\n    calls.append(1)\n    return [9]\nf()[0] /= 2')
    assert names['calls'] == [1]


@pytest.mark.parametrize(
    'text',
    [
        'from __future__ import division\n',
        'x = 1\nfrom __future__ import print_function, division\n',
        'from __future__ import (absolute_import,\n    division)\n',
    ],
)
def test_true_division_stays_where_it_was_asked_for(text):
    assert run('x = 7 / 2', text)['x'] == 3.5


@pytest.mark.parametrize('text', ['# from __future__ import division', 'from x import division'])
def test_true_division_was_asked_for_by_the_import_only(text):
    assert run('x = 7 / 2', text)['x'] == 3


def test_the_docstring_stays():
    names = run('"""The docstring."""\nx = 7 / 2')
    assert (names['__doc__'], names['x']) == ('The docstring.', 3)


def test_a_source_without_divisions_gets_no_import():
    assert set(run('x = 1')) == {'x', '__builtins__'}


def test_setting_the_default_encoding_does_nothing():
    """Calls of something else by these names remain."""
    names = run(
        'import importlib, sys\nimportlib.reload(sys)\nsys.setdefaultencoding("utf8")\n'
        'class S: setdefaultencoding = list.append\n'
        'calls = []\nS.setdefaultencoding(calls, 1)\n'
    )
    assert names['calls'] == [1]
    with pytest.raises(TypeError, match='module'):
        run('import importlib\nimportlib.reload(5)')
