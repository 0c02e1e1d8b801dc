"""SASLprep, by the examples of RFC 4013 and the rules of RFC 3454."""

from __future__ import annotations

import pytest

from kafka.net.sasl.saslprep import saslprep


@pytest.mark.parametrize(
    ('text', 'prepared'),
    [
        ('I\u00adX', 'IX'),  # RFC 4013, section 3, example 1: the soft hyphen goes
        ('user', 'user'),  # 2
        ('USER', 'USER'),  # 3: case stays
        ('\u00aa', 'a'),  # 4
        ('\u2168', 'IX'),  # 5
        ('', ''),
        ('a\u00a0b', 'a b'),  # a space that is none of ASCII's
        ('a\u3000b', 'a b'),
        ('e\u0301', '\u00e9'),  # composed
        ('\ufb03', 'ffi'),
        ('\u05d0', '\u05d0'),  # from right to left
        ('\u05d01\u05d0', '\u05d01\u05d0'),
    ],
)
def test_what_a_text_becomes(text, prepared):
    assert saslprep(text) == prepared


@pytest.mark.parametrize(
    'text',
    [
        '\u0007',  # RFC 4013, section 3, example 6: a control character
        '\u06271',  # 7: from right to left, with another end
        'a\u05d0',
        '\u05d0a\u05d0',
        '\x7f',
        '\ue000',  # private use
        '\ufffe',  # no character
        '\ufffd',
        '\u2ff0',
        '\u200e',
        '\U000e0001',
        '\ud800',
    ],
)
def test_what_is_forbidden(text):
    with pytest.raises(ValueError, match='text') as caught:
        saslprep(text)
    assert text not in str(caught.value)


def test_what_unicode_3_2_does_not_know_may_stand_in_a_name_only():
    assert saslprep('\u0221', allow_unassigned=True) == '\u0221'
    with pytest.raises(ValueError, match='Unicode 3.2'):
        saslprep('\u0221')
