"""Expressions match what Python's do where RE2 reads them alike; the others are refused."""

from __future__ import annotations

import re

import hypothesis
import pytest
from hypothesis import strategies

from kafka.testing.groups.regex import LONGEST_NAME, Pattern
from test.timing import spent

ATOMS = strategies.sampled_from(
    ['a', 'b', '.', 'A', '-', '[ab]', '[^a]', r'\w', r'\d', r'\D', '^', '$', r'\b', '(?i:A)']
    + ['[a-c-]', '[]a]', r'\.', r'\x61', '(?s:.)', r'\A', r'\z', '(?i-s:b.)', r'[\d\-]']
)


def grown(inner):
    repeats = strategies.sampled_from(['*', '+', '?', '{2}', '{1,2}', '{2,}', '*?', '{0}'])
    return strategies.one_of(
        strategies.tuples(inner, inner).map(''.join),
        strategies.tuples(inner, inner).map(lambda two: '(?:%s|%s)' % two),
        strategies.tuples(inner, repeats).map(lambda two: '(?:%s)%s' % two),
        inner.map('({})'.format),
    )


@hypothesis.given(
    strategies.recursive(ATOMS, grown, max_leaves=6),
    strategies.lists(strategies.text('aAbc1-.\n', max_size=6), max_size=5),
)
def test_a_text_matches_as_in_python(pattern, texts):
    try:
        ours = Pattern(pattern)
    except ValueError as error:
        assert 'repeats' in str(error)  # a repeat of what has repeats or choices
        return
    # The end of the text is written otherwise there.
    python = re.compile(re.sub(r'\$|\\z', r'\\Z', pattern), re.ASCII)
    assert ours.matching(texts) == {text for text in texts if python.fullmatch(text)}


@pytest.mark.parametrize(
    'pattern, text',
    [
        ('', ''),
        ('orders.*', 'orders.eu-1'),
        (r'.*-orders-v[0-9]+(-eu|-us)?', 'shop-orders-v2-eu'),
        ('[^.]+[.][^.]+[.][^.]+', 'shop.orders.eu'),
        ('(orders|payments)', 'payments'),
        ('(orders){2}', 'ordersorders'),
        ('(a|b){2}', 'ab'),
        ('((a|b){2}){1}', 'ab'),
        ('a{2,}', 'aaa'),
        ('ä+[^ö]', 'ää'),
        ('x{0}y', 'y'),
        ('(?P<x>a)', 'a'),
        ('(?i)A[^b](?-i:C)', 'acC'),
        ('(?i:a)B', 'AB'),
        (r'\a\f\t\n\r\v', '\a\f\t\n\r\v'),
        ('}]', '}]'),
        ('a|', ''),
        (r'[\]\-x]+', ']-x'),
        (r'a\z', 'a'),
        ('ä', 'ä'),
    ],
)
def test_what_matches(pattern, text):
    assert Pattern(pattern).matches(text)


@pytest.mark.parametrize(
    'pattern, text',
    [
        ('orders', 'orders2'),
        ('(?i)[^a]', 'A'),
        ('.', '\n'),
        ('a|b', 'ab'),
        ('a$', 'a\n'),
        (r'\w', 'ä'),
        (r'\d', '\N{ARABIC-INDIC DIGIT ONE}'),
    ],
)
def test_what_does_not_match(pattern, text):
    assert not Pattern(pattern).matches(text)


@pytest.mark.parametrize(
    'pattern',
    ['(', 'a)', '*', 'a**', 'a+*', 'a{2}{3}', '|*', '(*)', 'a{3,2}', 'a{1001}', '(?P<a', '[', '[a']
    + ['[]', '[^]', '[b-a]', r'[a-\d]', '[a-', '[\\', '\\', '(?P<x>a)(?P<x>b)', '((a{99}){9}){9}']
    # What one of both does not have, or reads otherwise.
    + ['(?=a)', '(?!a)', '(?<=a)', '(?<!a)', '(?>a)', '(?P=x)', '(?#x)', r'(a)\1', r'\Z', 'a++']
    + [r'\Qa\E', r'\pL', r'\p{Lu}', r'\s', r'\B', '(?U)a', '(?m)^a', 'a(?i)b', 'a{,2}', 'a{x']
    # A set does not end with its first "]"; RE2 reads no number with a zero before it.
    + [
        '[][](a+)+b]',
        '[][](?=a)b]',
        '[^][](?!b)a]',
        '[][]a{,2}]',
        '[]--]',
        '[]||x',
        'a{01}',
        'a{2,03}',
    ]
    # With the flag i they differ about what is not ASCII.
    + ['(?i)ä', '(?i:a)ä', r'(?i)[^\xff]', '(?si)ä']
    + ['[[:alpha:]]', '[a&&b]', '[a--b]', r'\x{61}', r'\07', r'\u0061', '(?<x>a)', '(?i'],
)
def test_what_is_refused(pattern):
    with pytest.raises(ValueError, match='^regular expression') as caught:
        Pattern(pattern)
    assert repr(pattern) in str(caught.value)


def test_a_refusal_says_what_where_and_why():
    with pytest.raises(ValueError) as caught:
        Pattern('orders-(a+)+b')
    assert str(caught.value) == (
        "regular expression 'orders-(a+)+b': '+' at 11 repeats what may match in several ways, "
        'for which re could take very long: the embedded broker refuses this, '
        'whatever Apache Kafka does'
    )
    with pytest.raises(ValueError, match=r"'\\\\Qa.b' at 2 is not one that RE2 and Python read"):
        Pattern(r'ab\Qa.b')


@pytest.mark.parametrize(
    'pattern',
    ['(a+)+b', '(a|a)*b', '(a*)*b', '(?:a?){30}a{30}', '(.*a){12}b', '(?:a?){1000}' * 20]
    + ['.*.*.*.*b', '(a|b)' * 24, 'x' * 1001, '(' * 200 + ')' * 200, '(((a{9}){1000}){1000})']
    + [
        'a*a*a*' + '()' * 400 + 'b',
        'a*a*a*(){1000}b',
        r'.*.*.*' + r'\b' * 300 + 'x',
        '(((){9}){99}){9}',
    ],
)
def test_what_could_take_long_is_refused_at_once(pattern):
    refused = pytest.raises(ValueError, match='long|more than|characters|within')
    with spent() as found, refused:
        Pattern(pattern)
    assert found.seconds < 1.0


@pytest.mark.parametrize(
    'pattern', ['a*a*a*b', '(a)*(a)*(a)*', '[a-z]+a[a-z]+(a|b)?c', 'a?' * 15 + 'a' * 240 + 'b']
)
def test_what_is_not_refused_takes_a_second_at_most(pattern):
    made = Pattern(pattern)
    with spent() as found:
        assert not made.matches('a' * (LONGEST_NAME - 1) + '-')
    assert found.seconds < 1.0


def test_nothing_matches_a_text_that_is_too_long():
    assert Pattern('.*').matches('a' * 100_000)
    assert Pattern('.*a.*').matches('a' * LONGEST_NAME)
    assert not Pattern('.*a.*').matches('a' * 100_000)


def test_a_search_in_many_texts_is_bounded():
    long_texts = ['a' * (LONGEST_NAME - n % 9) + '-%d' % n for n in range(3000)]
    with spent() as found:
        assert Pattern('(a)*(a)*(a)*').matching(long_texts) == set()
    assert found.seconds < 10.0
    texts = {'a%d' % n for n in range(3000)}
    assert Pattern('a[0-9]+').matching(texts) == texts


SYNTAX = strategies.text(r'ab()[]{}*+?|^$.\-:,01PpQEdwzxi', max_size=30)


@hypothesis.given(SYNTAX, strategies.lists(strategies.text('ab-1\n', max_size=8), max_size=3))
def test_any_text_is_an_expression_or_a_value_error(pattern, texts):
    try:
        found = Pattern(pattern)
    except ValueError:
        return
    found.matching(texts)
