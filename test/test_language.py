"""The language of each room does not get worse: test/language.py has the words and the limits."""

from __future__ import annotations

import collections

import pytest

from test import language


@pytest.fixture(scope='module')
def found():
    by_room = collections.defaultdict(list)
    for path in language.files(language.PATHS):
        for one in language.findings(path):
            by_room[language.room_of(one.path)].append(one)
    return by_room


@pytest.mark.parametrize('pattern', language.PATTERNS, ids=lambda pattern: pattern.words[:20])
def test_a_pattern_finds_its_example_and_not_the_better_sentence(pattern):
    def patterns_in(sentence):
        text = sentence.lstrip('# ') if pattern.comments else sentence
        found = language.findings_in(language.Text(1, text, pattern.comments))
        return [one.pattern for one in found]

    assert pattern in patterns_in(pattern.found)
    assert pattern not in patterns_in(pattern.fine)


def test_no_room_has_more_findings_than_its_limit(found):
    over = {
        room: [
            '%s:%d: "%s": %s' % (one.path, one.line, one.words, one.pattern.better) for one in all
        ]
        for room, all in found.items()
        if len(all) > language.LIMITS.get(room, 0)
    }
    assert over == {}


def test_limits_are_lowered_when_a_room_gets_better(found):
    """With a margin, because rooms are changed in several branches at a time."""
    loose = {
        room: len(found[room])
        for room, limit in language.LIMITS.items()
        if len(found[room]) < 0.8 * limit
    }
    assert loose == {}


def test_words_in_literals_code_and_data_are_not_read():
    source = 'x = 1  # see ``behind``\ny = {"behind": "a"}\n'
    assert list(language.texts_of_python(source)) == [language.Text(1, 'see ``behind``', True)]
    assert list(language.findings_in(language.Text(1, 'see ``behind``'))) == []


def test_code_in_a_document_is_not_read():
    text = 'A program::\n\n    # anew\n\nStarts anew.\n'
    (text,) = language.texts_of_rst(text)
    assert [one.line for one in language.findings_in(text)] == [5]


def test_a_finding_says_the_line_of_its_words():
    source = '"""A module.\n\nWords that are\nowed.\n"""\n'
    (text,) = language.texts_of_python(source)
    assert [one.line for one in language.findings_in(text)] == [4]
