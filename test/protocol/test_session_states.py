"""Logins on a session: what may be sent while one goes on, and what is taken for its answers."""

from __future__ import annotations

import pytest

from kafka.errors import FrameError, IllegalStateError
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafka.protocol.session import NEED_DATA, LoginAnswered, ResponseReceived, Role, Session
from test.protocol.test_session import METADATA, answered, client, event_of

STEP = SaslAuthenticateRequest(auth_bytes=b'x')
STEP_ANSWER = SaslAuthenticateResponse(error_code=0, error_message=None, auth_bytes=b'y')
LOGIN_RANGES = {3: (0, 9), 17: (0, 1), 36: (0, 2)}


def test_during_a_login_only_its_steps_are_sent():
    me = client(LOGIN_RANGES)
    me.begin_login()
    with pytest.raises(
        IllegalStateError, match="cannot send in state logging in, only in .'ready'"
    ):
        me.send(METADATA)
    me.send(STEP)
    assert event_of(me, answered(0, STEP_ANSWER, 2)) == LoginAnswered(STEP_ANSWER)
    me.end_login()
    me.send(METADATA)


def test_a_bare_token_is_answered_by_a_bare_token():
    me = client(LOGIN_RANGES)
    me.begin_login()
    assert me.send_token(b'abc') == b'\0\0\0\x03abc'
    assert event_of(me, b'\0\0\0\x00') == LoginAnswered(b'')
    me.end_login()
    me.send(METADATA)
    assert isinstance(event_of(me, answered(0)), ResponseReceived)


def test_answers_to_earlier_requests_come_before_those_of_a_new_login():
    """KIP-368; the limit of requests in flight is no reason to let a login end."""
    me = client(LOGIN_RANGES, max_in_flight=1)
    me.send(METADATA)
    me.begin_login()
    me.send(STEP)
    me.receive_data(answered(0) + answered(1, STEP_ANSWER, 2))
    assert isinstance(me.next_event(), ResponseReceived)
    assert me.next_event() == LoginAnswered(STEP_ANSWER)


def test_whole_frames_are_taken_during_a_login():
    me = client(LOGIN_RANGES)
    me.begin_login()
    me.send(STEP)
    assert me.receive_frame(answered(0, STEP_ANSWER, 2)[4:]) == LoginAnswered(STEP_ANSWER)


def test_who_has_not_logged_in_need_not_be_believed_long_frames():
    me = client(LOGIN_RANGES)
    me.begin_login()
    me.send(STEP)
    me.receive_data(b'\0\x08\0\x01')
    with pytest.raises(FrameError, match='the limit is 524288'):
        me.next_event()


def test_after_a_login_frames_are_as_long_as_before():
    me = client(LOGIN_RANGES, max_frame_bytes=10_000_000)
    me.begin_login()
    me.end_login()
    me.receive_data(b'\0\x08\0\x01')
    assert me.next_event() is NEED_DATA


def test_versions_can_be_asked_in_version_0_before_a_login():
    me, broker = Session(Role.CLIENT, 'me'), Session(Role.SERVER)
    asked = event_of(broker, me.negotiate(version=0))
    assert asked.header.api_version == 0
