"""Names of SASL mechanisms, in whatever case, and what is said of those that there are not."""

from __future__ import annotations

import pytest

from kafka.errors import InvalidOptionError
from kafka.net import mechanisms, sasl


def test_those_that_are_always_there_are_those_with_a_class():
    assert set(mechanisms.BUILT_IN) <= set(mechanisms.registered)
    for name in mechanisms.BUILT_IN:
        assert sasl.get_sasl_mechanism(name).name == name


@pytest.mark.parametrize(
    ('given', 'name'), [('PLAIN', 'PLAIN'), ('plain', 'PLAIN'), ('Scram-Sha-256', 'SCRAM-SHA-256')]
)
def test_case_is_no_matter(given, name):
    assert mechanisms.check_mechanism(given) == name


def test_a_name_of_the_program_is_taken_as_it_is(monkeypatch):
    monkeypatch.setattr(mechanisms, 'registered', {'mine-1': object})
    assert mechanisms.check_mechanism('mine-1') == 'mine-1'
    assert 'mine-1' in mechanisms.known_mechanisms()


@pytest.mark.parametrize(
    ('given', 'told'),
    [
        ('SCRAM-SHA_256', 'did you mean SCRAM-SHA-256'),
        ('gssapi2', 'did you mean GSSAPI'),
        ('xyz', "no sasl_mechanism 'xyz'; there are AWS_MSK_IAM, "),
    ],
)
def test_an_unknown_one_is_told_with_those_that_there_are(given, told):
    with pytest.raises(InvalidOptionError, match=told):  # an AssertionError too, as up to 2.0
        mechanisms.check_mechanism(given)
