"""Epochs of share sessions, their partitions and their number."""

from __future__ import annotations

import pytest

from kafka.testing.errors import (
    INVALID_REQUEST,
    INVALID_SHARE_SESSION_EPOCH,
    SHARE_SESSION_LIMIT_REACHED,
    SHARE_SESSION_NOT_FOUND,
)
from kafka.testing.groups import share_sessions
from kafka.testing.groups.share_sessions import SessionKey, ShareSessions

KEY = SessionKey('g', 'a')
OTHER = SessionKey('g', 'b')
ONE, TWO = (b'topic', 0), (b'topic', 1)


def opened(sessions, epoch, wanted=(), forgotten=(), key=KEY, connection=1, acknowledges=False):
    return sessions.open(key, connection, epoch, wanted, forgotten, acknowledges)


def test_a_session_begins_in_epoch_1_whatever_it_was_before():
    sessions = ShareSessions(10)
    opened(sessions, 0, [ONE])
    opened(sessions, 1)
    session = opened(sessions, 0, [TWO])
    assert (session.epoch, list(session.partitions)) == (1, [TWO])


def test_a_session_that_begins_acknowledges_nothing():
    assert opened(ShareSessions(10), 0, acknowledges=True) == INVALID_REQUEST


def test_partitions_are_added_and_forgotten():
    sessions = ShareSessions(10)
    opened(sessions, 0, [ONE])
    assert list(opened(sessions, 1, [TWO]).partitions) == [ONE, TWO]
    assert list(opened(sessions, 2, [], [ONE]).partitions) == [TWO]


def test_partitions_take_turns():
    sessions = ShareSessions(10)
    session = opened(sessions, 0, [ONE, TWO])
    assert session.wanted() == [ONE, TWO]
    session.advance()
    assert session.wanted() == [TWO, ONE]


def test_an_epoch_must_be_the_next():
    sessions = ShareSessions(10)
    assert opened(sessions, 1) == SHARE_SESSION_NOT_FOUND
    opened(sessions, 0)
    assert opened(sessions, 2) == INVALID_SHARE_SESSION_EPOCH
    assert opened(sessions, 1).epoch == 2


def test_the_epoch_after_the_last_is_the_first():
    session = opened(ShareSessions(10), 0)
    session.epoch = 2**31 - 1
    session.advance()
    assert session.epoch == 1


def test_the_end_needs_no_epoch():
    sessions = ShareSessions(10)
    session = opened(sessions, 0)
    assert opened(sessions, -1) is session
    assert session.epoch == 1


@pytest.mark.parametrize(('epoch', 'error'), [(0, 123), (2, 123), (1, 0), (-1, 0)])
def test_acknowledgements_have_the_epochs_of_fetches(epoch, error):
    sessions = ShareSessions(10)
    session = opened(sessions, 0)
    found = sessions.acknowledge(KEY, epoch)
    assert found == error if error else found is session
    assert session.epoch == (2 if epoch == 1 else 1)


def test_there_are_only_so_many():
    sessions = ShareSessions(1)
    opened(sessions, 0)
    assert opened(sessions, 0, key=OTHER) == SHARE_SESSION_LIMIT_REACHED
    assert opened(sessions, 0).epoch == 1


def test_all_together_have_only_so_many_partitions(monkeypatch):
    monkeypatch.setattr(share_sessions, '_MOST_PARTITIONS', 20)
    sessions = ShareSessions(10)
    many = [(b'topic', index) for index in range(15)]
    opened(sessions, 0, many)
    assert opened(sessions, 0, many, key=OTHER) == SHARE_SESSION_LIMIT_REACHED
    more = [(b'other', index) for index in range(15)]
    assert opened(sessions, 1, more) == SHARE_SESSION_LIMIT_REACHED
    assert opened(sessions, 2) == SHARE_SESSION_NOT_FOUND


def test_a_session_ends_with_its_connection():
    sessions = ShareSessions(10)
    session = opened(sessions, 0, connection=1)
    opened(sessions, 0, key=OTHER, connection=2)
    assert sessions.end_with(1) == [session]
    assert sessions.has_group('g')
    assert not sessions.has_group('h')
    assert len(sessions) == 1
    assert sessions.end(KEY) is None
