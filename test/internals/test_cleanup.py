"""Clean-up that never replaces the exception on its way to the program."""

from __future__ import annotations

import sys

import pytest

from kafka.internals.cleanup import CleanUp, clean_up


def fail():
    raise ZeroDivisionError('in the clean-up')


def test_without_an_error_what_the_clean_up_raises_is_raised():
    with pytest.raises(ZeroDivisionError), CleanUp(fail):
        pass


@pytest.mark.parametrize('error', [SystemExit(3), KeyboardInterrupt(), ValueError('mine')])
def test_the_error_of_the_block_is_raised_and_that_of_the_clean_up_is_logged(error, caplog):
    with pytest.raises(type(error)) as raised, CleanUp(fail):
        raise error
    assert raised.value is error
    assert 'cleaning up after %s failed' % type(error).__name__ in caplog.text
    assert 'in the clean-up' in caplog.text


def test_a_second_interrupt_ends_the_clean_up():
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        clean_up(interrupted, SystemExit(3))


def test_the_clean_up_is_called_once_after_the_block():
    calls = []
    with CleanUp(lambda: calls.append('clean-up')):
        calls.append('block')
    assert calls == ['block', 'clean-up']
    with pytest.raises(SystemExit), CleanUp(lambda: calls.append('clean-up')):
        sys.exit(0)
    assert calls == ['block', 'clean-up', 'clean-up']
