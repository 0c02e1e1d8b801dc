"""Patterns of Java: found is what java.util.regex finds, or they are refused.

The tables are what OpenJDK 17 answers; thousands of random patterns were compared with it as well.
"""

from __future__ import annotations

import pickle
from typing import List

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from kafka.spark.java_patterns import JavaPatternError, compile_java

TOPICS = ['a', 'A', 'ab', 'topic-1', 'topic.x', 'Topic_2', 'aaaa', 'x1y2', '__offsets', '-', '12']

FOUND = {
    'topic': ['topic-1', 'topic.x'],
    '^topic.*': ['topic-1', 'topic.x'],
    '(?i)topic': ['topic-1', 'topic.x', 'Topic_2'],
    '(?i:T)opic-': ['topic-1'],
    'topic[.-]': ['topic-1', 'topic.x'],
    r'topic\.x|x\d': ['topic.x', 'x1y2'],
    r'\Qc.x\E': ['topic.x'],
    r'\Qc.': ['topic.x'],
    r'(?<first>a)\k<first>': ['aaaa'],
    r'(?<first>a)b?\k<first>a': ['aaaa'],
    r'(a)\1': ['aaaa'],
    r'(a)\1a{2}': ['aaaa'],
    r'b\Z|aaa\z': ['ab', 'aaaa'],
    'a{2,3}b?$': ['aaaa'],
    '^a?b$': ['ab'],
    '^b': [],
    r'^\p{Alpha}{1,2}$': ['a', 'A', 'ab'],
    r'^[\p{Upper}\d]': ['A', 'Topic_2', '12'],
    r'^\P{Alnum}': ['__offsets', '-'],
    r'^\pL+\z': ['a', 'A', 'ab', 'aaaa'],
    r'\A[^a-z_]\Z': ['A', '-'],
    r'\x61\u0062': ['ab'],
    '(?<!_)_(?!_)[a-z2]': ['Topic_2'],
    '(?:a|x)(?=1)': ['x1y2'],
    r'^\w+$': ['a', 'A', 'ab', 'Topic_2', 'aaaa', 'x1y2', '__offsets', '12'],
    r'\bx': ['topic.x', 'x1y2'],
    '[a^-]$': ['a', 'aaaa', '-'],
    '': TOPICS,
}

#: Java does not take these either.
NO_PATTERN = [
    '*', 'a**', '(', 'a)', '[a', '{', 'a{', '{,2}', 'a{x}', '(?P<n>a)', '(?<n>a)(?P=n)', '(?#c)a',
    '(?<n', r'\k<n>', '\\', r'\y', '(?(1)a|b)', '[z-a]', '(?a)x', '(?L)x',
]  # fmt: skip

#: Java takes these, and means something else by them, or what Python cannot do.
OTHERS = [
    '[a-z&&[^x]]', '[a[bc]]', '[a&&b]', '[]a]', r'[\Qa\E]', 'a(?i)b', '(?x)a b', '(?d)a', r'\h',
    r'\R', r'\07', r'\e', r'\cA', r'\x{41}', '(?<=a+)b', r'(a)\10', r'\p{IsGreek}', r'[\P{Alpha}]',
    r'\G', r'\1(a)',
]  # fmt: skip


@pytest.mark.parametrize('pattern', FOUND)
def test_a_pattern_finds_what_it_finds_in_java(pattern: str) -> None:
    compiled = compile_java(pattern)
    assert [each for each in TOPICS if compiled.search(each)] == FOUND[pattern]


@pytest.mark.parametrize('pattern', NO_PATTERN)
def test_what_is_no_pattern_of_java_is_refused(pattern: str) -> None:
    with pytest.raises(JavaPatternError):
        compile_java(pattern)


@pytest.mark.parametrize('pattern', OTHERS)
def test_what_java_reads_otherwise_is_refused(pattern: str) -> None:
    with pytest.raises(JavaPatternError):
        compile_java(pattern)


def test_an_error_says_where() -> None:
    with pytest.raises(JavaPatternError, match='a set in a set is not supported at position 2'):
        compile_java('[a[b]]')


def test_a_pattern_can_be_pickled() -> None:
    copy = pickle.loads(pickle.dumps(compile_java(r'^\p{Alpha}+$')))
    assert copy.search('abc') and not copy.search('a1')


PIECES: List[str] = [
    'a',
    '[',
    ']',
    '(',
    ')',
    '{',
    '}',
    '?',
    '<',
    '\\',
    'Q',
    'E',
    'p',
    '^',
    '-',
    '*',
]


@given(some.lists(some.sampled_from(PIECES) | some.characters(), max_size=12).map(''.join))
@example('\\p')
@example('[\\')
@example('(?')
def test_any_text_is_a_pattern_or_refused_never_another_error(text: str) -> None:
    try:
        compile_java(text)
    except JavaPatternError:
        pass
