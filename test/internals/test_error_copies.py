"""Copies of errors: equal, with the causes, and without what raising added."""

from __future__ import annotations

import pytest

from kafka import errors
from kafka.internals.error_copies import unraised_copy

EVERY = sorted(
    {each for each in vars(errors).values() if isinstance(each, type)}, key=lambda cls: cls.__name__
)


def test_a_copy_is_equal_and_has_no_traceback():
    try:
        try:
            raise ValueError('the reason')
        except ValueError as reason:
            raise errors.TopicAuthorizationFailedError('t', 5) from reason
    except errors.KafkaError as error:
        error.failed_at = ('t', 0), 5
        copied = unraised_copy(error)
        assert copied == error and copied is not error and type(copied) is type(error)
        assert (copied.args, copied.failed_at, str(copied)) == (
            error.args,
            error.failed_at,
            str(error),
        )
        assert copied.__cause__ is error.__cause__ and copied.__suppress_context__
        assert copied.__traceback__ is None and error.__traceback__ is not None


@pytest.mark.parametrize('kind', [each for each in EVERY if issubclass(each, errors.KafkaError)])
def test_every_error_of_the_package_can_be_copied(kind):
    """Also those whose constructors take other arguments: a copy is made without them."""
    try:
        error = kind('text')
    except TypeError:
        pytest.skip('its constructor wants more')
    copied = unraised_copy(error)
    assert copied == error and str(copied) == str(error) and repr(copied) == repr(error)


@pytest.mark.parametrize('error', [OSError(2, 'no file'), KeyError('x'), KeyboardInterrupt()])
def test_errors_of_others_are_left_as_they_are(error):
    assert unraised_copy(error) is error
