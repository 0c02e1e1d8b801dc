"""The text of sasl.jaas.config: what is read of it, and that no error shows a part of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from kafka.errors import InvalidOptionError
from kafka.spark.jaas import parse_jaas

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule'

READ = {
    PLAIN + ' required username="alice" password="pw";': {'username': 'alice', 'password': 'pw'},
    PLAIN + " REQUIRED username='alice' ;": {'username': 'alice'},
    PLAIN + ' required username=alice;': {'username': 'alice'},
    PLAIN + ' required username = "alice" ;': {'username': 'alice'},
    PLAIN + ' required\n  username="alice"\n  password="a b";\n': {
        'username': 'alice',
        'password': 'a b',
    },
    PLAIN + ' required;': {},
    PLAIN + ' optional /* who */ username="alice" // nobody\n;': {'username': 'alice'},
    PLAIN + r' required password="a\"b\\c\101\n";': {'password': 'a"b\\cA\n'},
    PLAIN + ' required password="a;b=c//d\'";': {'password': "a;b=c//d'"},
    PLAIN + ' required password="";': {'password': ''},
    PLAIN + ' required keyTab="/etc/x.keytab" useKeyTab=true;': {
        'keyTab': '/etc/x.keytab',
        'useKeyTab': 'true',
    },
}

#: Each has the password canary in it.
WRONG = {
    '': 'begin with the class',
    'canary': 'begin with the class',
    '"canary" required;': 'begin with the class',
    'username="u" password="canary"': 'after the class one of',
    'KafkaClient { %s required password="canary"; };' % PLAIN: 'after the class one of',
    PLAIN + ' password="canary";': 'after the class one of',
    PLAIN + ' required password="canary"': 'end with a semicolon',
    PLAIN + ' required password="canary;': 'a quotation mark is not closed',
    PLAIN + ' required password "canary";': 'options must be written',
    PLAIN + ' required password="canary" username;': 'options must be written',
    PLAIN + ' required password==canary;': 'options must be written',
    PLAIN + ' required =password canary;': 'options must be written',
    PLAIN + ' required password=;': 'options must be written',
    PLAIN + ' required; %s required password="canary";' % PLAIN: 'one login module',
}


@pytest.mark.parametrize('text', READ)
def test_a_login_module_and_its_options_are_read(text: str) -> None:
    module = parse_jaas(text)
    assert (module.class_name, module.name) == (PLAIN, 'PlainLoginModule')
    assert module.options == READ[text]


@pytest.mark.parametrize('text', WRONG)
def test_what_is_none_is_refused_without_showing_any_of_it(text: str) -> None:
    with pytest.raises(InvalidOptionError, match=WRONG[text]) as caught:
        parse_jaas(text)
    assert 'canary' not in str(caught.value)
    assert caught.value.args[0].startswith('kafka.sasl.jaas.config is invalid: ')


def test_a_module_shows_no_value() -> None:
    assert 'canary' not in repr(parse_jaas(PLAIN + ' required password="canary";'))


def test_a_shaded_class_has_the_same_name() -> None:
    assert parse_jaas('kafkashaded.%s required;' % PLAIN).name == 'PlainLoginModule'


@given(some.text() | some.text('"\'\\;= aB.\n').map((PLAIN + ' required ').__add__))
def test_any_text_is_read_or_refused_never_another_error(text: Any) -> None:
    try:
        parse_jaas(text)
    except InvalidOptionError:
        pass


@given(some.dictionaries(some.text('abcXYZ_', min_size=1), some.text()))
def test_values_are_the_same_when_they_were_quoted_and_read(options: Any) -> None:
    quoted = {
        name: value.replace('\\', '\\\\').replace('"', '\\"').replace('\n', '\\n')
        for name, value in options.items()
    }
    text = ''.join(' %s="%s"' % each for each in quoted.items())
    assert parse_jaas(PLAIN + ' required%s;' % text).options == options
