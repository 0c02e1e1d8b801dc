"""kafka.consumer.listener: what programs derive from, and what is taken for a listener."""

from __future__ import annotations

import pytest

from kafka.consumer.listener import (
    AsyncConsumerRebalanceListener,
    ConsumerRebalanceListener,
    check_listener,
    defines_lost,
    is_async,
)
from kafka.internals.validation import ArgumentTypeError


class Old(ConsumerRebalanceListener):
    def __init__(self):
        self.revoked = []

    def on_partitions_revoked(self, revoked):
        self.revoked.append(revoked)


class OldAsync(AsyncConsumerRebalanceListener):
    def __init__(self):
        self.revoked = []

    async def on_partitions_revoked(self, revoked):
        self.revoked.append(revoked)


class Losing(ConsumerRebalanceListener):
    def on_partitions_lost(self, lost):
        return None


class LosingAsync(AsyncConsumerRebalanceListener):
    async def on_partitions_lost(self, lost):
        return None


def test_what_is_lost_is_revoked_unless_the_program_says_otherwise():
    listener = Old()
    listener.on_partitions_lost({1})
    assert listener.revoked == [{1}]


def test_what_is_lost_is_revoked_as_a_coroutine_too():
    listener = OldAsync()
    with pytest.raises(StopIteration):
        listener.on_partitions_lost({1}).send(None)
    assert listener.revoked == [{1}]


def test_a_program_that_defines_one_call_may_leave_out_the_others():
    assert Old().on_partitions_assigned({1}) is None


@pytest.mark.parametrize(
    'listener, defines, is_coroutine',
    [
        (Old(), False, False),
        (Losing(), True, False),
        (OldAsync(), False, True),
        (LosingAsync(), True, True),
    ],
)
def test_it_is_told_which_calls_a_program_defines(listener, defines, is_coroutine):
    check_listener(listener)
    assert defines_lost(listener) is defines
    assert is_async(listener) is is_coroutine


def test_no_listener_defines_nothing():
    check_listener(None)
    assert not defines_lost(None)
    assert not is_async(None)


@pytest.mark.parametrize('thing', [print, object(), Old, 'listener'])
def test_what_does_not_derive_from_a_listener_is_refused(thing):
    with pytest.raises(ArgumentTypeError, match='must be a ConsumerRebalanceListener'):
        check_listener(thing)
