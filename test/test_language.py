"""Docstrings, comments, messages and documents have none of the words of test/language.py."""

from __future__ import annotations

import pytest

from test import language


@pytest.mark.parametrize('pattern', language.PATTERNS, ids=lambda pattern: pattern.words[:20])
def test_a_pattern_finds_its_example_and_not_the_better_sentence(pattern):
    def patterns_in(sentence):
        text = sentence.lstrip('# ') if pattern.comments else sentence
        found = language.findings_in(language.Text(1, text, pattern.comments))
        return [one.pattern for one in found]

    assert pattern in patterns_in(pattern.found)
    assert pattern not in patterns_in(pattern.fine)


def test_there_are_no_findings():
    paths = language.files(language.PATHS)
    assert [str(one) for path in paths for one in language.findings(path)] == []


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
