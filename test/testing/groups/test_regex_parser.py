"""What is an expression for RE2, and which trees become of it."""

from __future__ import annotations

import pytest

from kafka.testing.groups.regex_parser import Choice, One, Place, Repeat, Sequence, parse


def shape(node):
    """Return a tree without its tests of characters."""
    if isinstance(node, One):
        return 'one'
    if isinstance(node, Place):
        return node.kind
    if isinstance(node, Repeat):
        return shape(node.part), node.least, node.most
    kind = {Sequence: 'sequence', Choice: 'choice'}[type(node)]
    return [kind, *map(shape, node.parts)]


@pytest.mark.parametrize(
    'pattern, tree',
    [
        ('', ['sequence']),
        ('ab', ['sequence', 'one', 'one']),
        ('a|', ['choice', ['sequence', 'one'], ['sequence']]),
        ('a*', ['sequence', ('one', 0, None)]),
        ('a+?', ['sequence', ('one', 1, None)]),
        ('a?', ['sequence', ('one', 0, 1)]),
        ('a{3}', ['sequence', ('one', 3, 3)]),
        ('a{3,}', ['sequence', ('one', 3, None)]),
        ('a{3,5}', ['sequence', ('one', 3, 5)]),
        ('a{,5}', ['sequence', *['one'] * 5]),
        ('^a$', ['sequence', 'A', 'one', 'z']),
        ('(?m)^a$', ['sequence', '^', 'one', '$']),
        (r'\b\B\A\z', ['sequence', 'b', 'B', 'A', 'z']),
        ('(?:a)(b)', ['sequence', ['sequence', 'one'], ['sequence', 'one']]),
    ],
)
def test_trees(pattern, tree):
    assert shape(parse(pattern)) == tree


@pytest.mark.parametrize(
    'pattern',
    [
        '(',
        ')',
        'a)',
        '(?=a)',
        '(?!a)',
        '(?<=a)',
        '(?<!a)',
        '(?>a)',
        '(?P=x)',
        '(?i',
        '(?#x)',
        '(?P<a',
    ]
    + ['*', 'a**', 'a+*', 'a{2}{3}', '|*', '(*)', '(?i)*', 'a{3,2}', 'a{1001}', 'a{9999999999}']
    + [r'\1', r'(a)\1', r'\Z', r'\y', r'\p{Xx}', r'\x{110000}', r'\xg', '\\', r'[\1]']
    + ['[', '[a', '[]', '[^]', '[b-a]', '[[:nothing:]]', r'[a-\d]', '[a-', '[\\'],
)
def test_what_re2_refuses(pattern):
    with pytest.raises(ValueError, match='.'):
        parse(pattern)
