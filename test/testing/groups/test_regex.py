"""Expressions match what Python's do, in time that cannot explode."""

from __future__ import annotations

import re
import time

import hypothesis
import pytest
from hypothesis import strategies

from kafka.testing.groups.regex import Effort, Pattern

ATOMS = strategies.sampled_from(
    ['a', 'b', '.', 'A', '-', '[ab]', '[^a]', r'\w', r'\d', r'\S', '^', '$', r'\b', r'\B', '(?i:A)']
    + ['[a-c-]', '[]a]', r'\.', r'\x61', '[[:alpha:]]', '(?s:.)', '(?m:^)', '(?m:$)', r'\A']
)


def grown(inner):
    repeats = strategies.sampled_from(['*', '+', '?', '{2}', '{1,2}', '{2,}', '*?', '{0}'])
    return strategies.one_of(
        strategies.tuples(inner, inner).map(''.join),
        strategies.tuples(inner, inner).map(lambda two: '(?:%s|%s)' % two),
        strategies.tuples(inner, repeats).map(lambda two: '(?:%s)%s' % two),
        inner.map('({})'.format),
    )


def matches(pattern, text):
    return Pattern(pattern).matches(text, Effort())


@hypothesis.given(
    strategies.recursive(ATOMS, grown, max_leaves=6),
    strategies.lists(strategies.text('aAbc1-.\n', max_size=6), max_size=5),
)
def test_a_text_matches_as_in_python(pattern, texts):
    # The ends of lines and named classes are written otherwise there.
    python = re.sub(r'(?<!:)\$', r'\\Z', pattern).replace('[[:alpha:]]', '[a-zA-Z]')
    python = re.compile(python.replace(']a]', r'\]a]'), re.ASCII)
    ours = Pattern(pattern)
    for text in texts:
        if not text and r'\B' in pattern:
            continue  # of which Python thinks otherwise
        assert ours.matches(text, Effort()) == bool(python.fullmatch(text)), text


@pytest.mark.parametrize(
    'pattern, text',
    [
        ('', ''),
        ('orders.*', 'orders.eu-1'),
        (r'\Qa.b\E+', 'a.bbb'),
        (r'a\Q*', 'a*'),
        ('(?P<x>a)(?<y>b)', 'ab'),
        ('(?i)A[^b](?-i)C', 'acC'),
        ('(?i:a)B', 'AB'),
        ('(?U)a+', 'aa'),
        (r'\pL\p{Lu}\PL\p{^L}\p{Any}', 'aB11!'),
        (r'[\d\pL-]+', '1-ä'),
        (r'\101\07\0', 'A\a\0'),
        (r'\x{1F600}', '\U0001f600'),
        (r'\a\f\t\n\r\v', '\a\f\t\n\r\v'),
        ('[[:^digit:][:punct:]]+', 'a.'),
        ('a{,2}', 'a{,2}'),
        ('a{x', 'a{x'),
        ('}]', '}]'),
        ('a|', ''),
        (r'[\]\-x]+', ']-x'),
        (r'a\z', 'a'),
    ],
)
def test_what_re2_has(pattern, text):
    assert matches(pattern, text)


@pytest.mark.parametrize(
    'pattern, text',
    [('orders', 'orders2'), ('(?i)[^a]', 'A'), ('.', '\n'), ('(?i)a(?-i)b', 'aB'), ('a|b', 'ab')],
)
def test_what_does_not_match(pattern, text):
    assert not matches(pattern, text)


@pytest.mark.parametrize(
    'pattern',
    [
        'x' * 20001,
        '(' * 200 + ')' * 200,
        '((a{1000}){1000})',
        '(((((){1000}){1000}){1000}){1000}){1000}',
        '(?:a?){1000}' * 20,
    ],
)
def test_what_is_too_large_is_refused_at_once(pattern):
    start = time.process_time()
    with pytest.raises(ValueError, match='too|characters'):
        Pattern(pattern)
    assert time.process_time() - start < 1.0


@pytest.mark.parametrize(
    'pattern', ['(a+)+b', '(a|a)*b', '(a*)*b', '(?:a?){30}a{30}', '(.*a){12}b']
)
def test_no_expression_takes_longer_than_its_text(pattern):
    effort = Effort()
    assert Pattern(pattern).matching(['a' * 249], effort) == set()
    assert effort.left > 2_500_000


def test_nothing_matches_when_the_budget_is_spent():
    effort = Effort(5000)
    texts = ['%07d' % (number * 7919) for number in range(1000)]
    pattern = Pattern('(?:.*1.{500}|[0-9]+)')
    found = pattern.matching(texts, effort)
    assert 0 < len(found) < 1000
    assert effort.left <= 0
    assert not pattern.matches('1', effort)


def test_what_is_remembered_does_not_grow_without_end():
    pattern = Pattern('.*a.{30}')
    for number in range(200):
        pattern.matches(format(number * 7919, '060b').replace('1', 'a'), Effort())
    assert pattern._known_states <= 200000 + 100


SYNTAX = strategies.text(r'ab()[]{}*+?|^$.\-:,01PpQEdwzxi', max_size=30)


@hypothesis.given(SYNTAX, strategies.lists(strategies.text('ab-1\n', max_size=8), max_size=3))
def test_any_text_is_an_expression_or_a_value_error(pattern, texts):
    try:
        found = Pattern(pattern)
    except ValueError:
        return
    found.matching(texts, Effort())
