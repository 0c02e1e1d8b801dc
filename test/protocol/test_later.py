"""Messages that are made later are those that are made at once."""

from __future__ import annotations

import copy
import pickle

import pytest

from kafka.protocol import create_message, create_message_set
from kafka.protocol.later import MessagesLater
from kafka.record.memory_records import MemoryRecords

VALUES, KEYS = [b'a', None, b'c'], [b'k', b'k', None]
NOW = 1_700_000_000_000


def later(codec=0, level=None, made=None):
    def make():
        if made is not None:
            made.append(1)
        return create_message_set(list(zip(VALUES, KEYS)), codec, b'k', level)

    return MessagesLater(VALUES, KEYS, codec, level, make)


MESSAGES = [create_message(value, key) for value, key in zip(VALUES, KEYS)]


def test_they_look_like_the_list():
    messages = later()
    assert (len(messages), messages[1], messages[-1:]) == (3, MESSAGES[1], MESSAGES[-1:])
    assert list(messages) == MESSAGES
    assert repr(messages) == repr(MESSAGES)
    assert MESSAGES[0] in messages and messages.index(MESSAGES[2]) == 2


def test_they_equal_a_list_and_a_tuple_of_the_same():
    assert later() == MESSAGES and MESSAGES == later()
    assert later() == tuple(MESSAGES) and later() == later()
    assert later() != MESSAGES[:2] and later() != 5
    assert hash(later()) == hash(tuple(MESSAGES))


def test_they_can_be_added_to_a_list():
    assert later() + MESSAGES == MESSAGES + later() == MESSAGES * 2
    assert [*later()] == MESSAGES


def test_copies_are_lists():
    assert copy.copy(later()) == copy.deepcopy(later()) == MESSAGES
    assert pickle.loads(pickle.dumps(later())) == MESSAGES


def test_they_are_made_once_and_not_for_the_batch():
    made = []
    messages = later(made=made)
    messages.batch(NOW)
    assert made == []
    assert len(messages) == 3 and messages[0] is messages[0]
    assert made == [1]


@pytest.mark.parametrize('codec', [0, 1])
@pytest.mark.parametrize('level', [None, 1, 9])
def test_the_batch_holds_what_the_messages_hold(codec, level):
    (batch,) = MemoryRecords(later(codec, level).batch(NOW))
    assert (batch.magic, batch.codec) == (2, codec)
    assert [(r.timestamp, r.key, r.value) for r in batch] == [
        (NOW, key, value) for key, value in zip(KEYS, VALUES)
    ]
