"""Sessions: both ends of a connection fed to each other, and each against a bad peer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.errors import (
    BufferUnderflowError,
    CorrelationIdError,
    FrameError,
    IllegalStateError,
    KafkaError,
    ProtocolError,
    TooManyInFlightRequests,
    UnsupportedVersionError,
)
from kafka.protocol.api import encode_response
from kafka.protocol.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kafka.protocol.commit import OffsetDeleteRequest, OffsetDeleteResponse
from kafka.protocol.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafka.protocol.frames import frame
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.protocol.negotiation import BrokerVersions
from kafka.protocol.produce import ProduceRequest, ProduceResponse
from kafka.protocol.session import (
    NEED_DATA,
    TRANSITIONS,
    ConnectionClosed,
    Input,
    RequestReceived,
    ResponseReceived,
    Role,
    SendData,
    Session,
    State,
    UnsupportedRequest,
    VersionsNegotiated,
)
from kafka.protocol.transaction import InitProducerIdRequest, InitProducerIdResponse

METADATA = MetadataRequest(topics=[])
METADATA_ANSWER = MetadataResponse(brokers=[], topics=[])
RANGES = {0: (0, 9), 3: (0, 9), 10: (0, 3), 18: (0, 3)}


def client(ranges=RANGES, **options):
    """A client's session that knows the broker."""
    session = Session(Role.CLIENT, 'me', **options)
    session.adopt(BrokerVersions(dict(ranges)))
    return session


@pytest.mark.parametrize('request_', [None, 'x', MetadataRequest])
def test_what_is_no_message_is_not_sent(request_):
    session = client()
    with pytest.raises(TypeError, match='request must be a message'):
        session.send(request_)
    assert session.in_flight == 0


@pytest.mark.parametrize('option', ['version', 'highest', 'correlation_id'])
def test_a_number_that_is_none_is_named(option):
    session = client()
    with pytest.raises(TypeError, match='%s must be an int' % option):
        session.send(METADATA, **{option: '1'})
    assert session.in_flight == 0


@pytest.mark.parametrize(
    ('role', 'client_id', 'name'), [('client', 'x', 'role'), (Role.CLIENT, 5, 'client_id')]
)
def test_a_wrong_argument_of_a_session_is_named(role, client_id, name):
    with pytest.raises(TypeError, match='%s must be' % name):
        Session(role, client_id)


@pytest.mark.parametrize('data', [None, '', 'text'])
def test_only_bytes_are_received_and_only_no_bytes_mean_the_end(data):
    session = client()
    with pytest.raises(TypeError, match='data must be bytes'):
        session.receive_data(data)
    assert session.next_event() is NEED_DATA


def event_of(session, data):
    """Give a session bytes; return its one event."""
    session.receive_data(data)
    event = session.next_event()
    assert session.state in (State.CLOSED, State.FAILED) or session.next_event() is NEED_DATA
    return event


def answered(correlation_id, response=METADATA_ANSWER, version=9):
    """The bytes of a response, made without a session."""
    return frame(encode_response(response, version, correlation_id))


def versions(error_code=0, **ranges):
    keys = [ApiVersion(int(name[1:]), low, high) for name, (low, high) in ranges.items()]
    return ApiVersionsResponse(error_code=error_code, api_keys=keys)


# ---------------------------------------------------------------- the two ends together


def test_a_conversation_from_negotiation_to_answer():
    me, broker = Session(Role.CLIENT, 'me'), Session(Role.SERVER)
    asked = event_of(broker, me.negotiate())
    assert asked.request.client_software_name == 'kafka-evergreen'
    reply = broker.respond(asked.header, versions(k3=(0, 5), k18=(0, 5)))
    negotiated = event_of(me, reply)
    assert negotiated == VersionsNegotiated(me.versions, 0, False)
    assert me.versions.ranges == {3: (0, 5), 18: (0, 5)}

    asked = event_of(broker, me.send(METADATA))
    assert isinstance(asked, RequestReceived)
    assert (asked.header.api_key, asked.header.api_version, asked.header.client_id) == (3, 5, 'me')
    assert asked.request == METADATA
    reply = broker.respond(asked.header, METADATA_ANSWER)
    assert event_of(me, reply) == ResponseReceived(1, METADATA, 5, METADATA_ANSWER, 0, False)


@pytest.mark.parametrize('theirs', range(5))
def test_both_ends_agree_on_the_brokers_highest_version(theirs):
    """A broker answers an unknown version of ApiVersions in version 0, with error 35 (KIP-511)."""
    me = Session(Role.CLIENT)
    broker = Session(Role.SERVER, supported={18: (0, theirs), 3: (0, 0)})
    asked = event_of(broker, me.negotiate())
    assert isinstance(asked, UnsupportedRequest)
    assert asked.supported == (0, theirs)
    refusal = broker.respond(asked.header, versions(35, k18=(0, theirs)), version=0)
    retry = event_of(me, refusal)
    assert isinstance(retry, SendData)
    asked = event_of(broker, retry.data)
    assert asked.header.api_version == theirs
    reply = broker.respond(asked.header, versions(k3=(0, 0), k18=(0, theirs)))
    assert isinstance(event_of(me, reply), VersionsNegotiated)
    assert me.state is State.READY


def test_a_broker_that_lists_nothing_with_error_35_gets_version_0():
    me, broker = Session(Role.CLIENT), Session(Role.SERVER, supported={18: (0, 0)})
    asked = event_of(broker, me.negotiate())
    retry = event_of(me, broker.respond(asked.header, versions(35), version=0))
    assert event_of(broker, retry.data).header.api_version == 0


def test_requests_may_be_pipelined_and_are_answered_in_order():
    me, broker = client(), Session(Role.SERVER)
    lookup = FindCoordinatorRequest(key='g')
    broker.receive_data(me.send(METADATA) + me.send(lookup))
    first, second = broker.next_event(), broker.next_event()
    assert me.in_flight == broker.in_flight == 2
    replies = broker.respond(first.header, METADATA_ANSWER)
    replies += broker.respond(second.header, FindCoordinatorResponse(node_id=7))
    me.receive_data(replies)
    assert [me.next_event().request for _ in range(2)] == [METADATA, lookup]
    assert me.next_event() is NEED_DATA
    assert me.in_flight == broker.in_flight == 0


def test_produce_with_acks_0_expects_no_answer_at_either_end():
    me, broker = client(), Session(Role.SERVER)
    quiet = ProduceRequest(acks=0, timeout_ms=1, topic_data=[])
    asked = event_of(broker, me.send(quiet))
    assert asked.request == quiet
    assert me.in_flight == broker.in_flight == 0
    with pytest.raises(IllegalStateError):
        broker.respond(asked.header, ProduceResponse(responses=[]))
    loud = ProduceRequest(acks=1, timeout_ms=1, topic_data=[])
    me.send(loud)
    assert me.in_flight == 1


@given(st.lists(st.integers(1, 30), max_size=30))
def test_bytes_may_arrive_cut_anywhere(cuts):
    me, broker = client(), Session(Role.SERVER)
    stream = b''.join(me.send(METADATA) for _ in range(3))
    events = []
    for size in cuts + [len(stream)]:
        broker.receive_data(stream[:size] or b'')
        stream = stream[size:]
        while broker.state is State.READY:
            event = broker.next_event()
            if event is NEED_DATA:
                break
            events.append(event)
    asked = [e for e in events if isinstance(e, RequestReceived)]
    assert [e.header.correlation_id for e in asked] == [0, 1, 2]


# ---------------------------------------------------------------- correlation


def test_correlation_ids_count_up_and_return_to_0_behind_the_largest():
    me = client()
    assert me.send(METADATA)[8:12] == b'\x00\x00\x00\x00'
    assert me.send(METADATA, correlation_id=2**31 - 1)[8:12] == b'\x7f\xff\xff\xff'
    assert me.send(METADATA)[8:12] == b'\x00\x00\x00\x00'


def test_an_answer_to_another_request_fails_the_session():
    me = client()
    me.send(METADATA)
    me.send(METADATA)
    me.receive_data(answered(1))
    with pytest.raises(CorrelationIdError, match='id 1, expected 0 for MetadataRequest'):
        me.next_event()
    assert me.state is State.FAILED
    with pytest.raises(IllegalStateError, match='failed'):
        me.next_event()


def test_an_answer_to_nothing_fails_the_session():
    me = client()
    me.receive_data(answered(0))
    with pytest.raises(CorrelationIdError, match='no request is in flight'):
        me.next_event()
    assert me.state is State.FAILED


def test_a_correlation_id_error_is_a_protocol_error():
    assert issubclass(CorrelationIdError, ProtocolError)


def test_a_server_answers_in_the_order_it_was_asked():
    me, broker = client(), Session(Role.SERVER)
    broker.receive_data(me.send(METADATA) + me.send(METADATA))
    _, second = broker.next_event(), broker.next_event()
    with pytest.raises(IllegalStateError, match='correlation id 1 is not the oldest'):
        broker.respond(second.header, METADATA_ANSWER)


def test_a_server_may_leave_a_request_without_an_answer_in_its_turn():
    me, broker = client(), Session(Role.SERVER)
    broker.receive_data(me.send(METADATA) + me.send(METADATA))
    first, second = broker.next_event(), broker.next_event()
    with pytest.raises(IllegalStateError, match='correlation id 1 is not the oldest'):
        broker.skip(second.header)
    broker.skip(first.header)
    assert broker.respond(second.header, METADATA_ANSWER)


# ---------------------------------------------------------------- versions


def test_the_highest_common_version_is_sent():
    assert client({3: (0, 4)}).choose_version(METADATA) == 4
    assert client({3: (0, 4)}).choose_version(METADATA, highest=2) == 2
    assert client({3: (0, 99)}).choose_version(METADATA) == MetadataRequest.max_version


def test_no_common_version_names_the_api_and_the_ranges():
    with pytest.raises(UnsupportedVersionError, match=r'MetadataRequest.*0 to 13.*90 to 99'):
        client({3: (90, 99)}).send(METADATA)
    with pytest.raises(UnsupportedVersionError, match='MetadataRequest'):
        client({}).send(METADATA)


def test_a_wish_is_granted_where_the_broker_serves_it():
    assert client({3: (0, 9)}).choose_version(METADATA, version=1) == 1


def test_a_wish_that_the_broker_dropped_is_negotiated_upwards():
    assert client({3: (4, 9)}).choose_version(METADATA, version=0) == 4


@pytest.mark.parametrize('ranges', [{3: (0, 2)}, {}, {3: (90, 99)}])
def test_a_wish_above_what_is_served_is_an_error(ranges):
    with pytest.raises(UnsupportedVersionError, match='MetadataRequest in version 7'):
        client(ranges).choose_version(METADATA, version=7)


def test_a_request_that_cannot_be_encoded_leaves_the_session_as_it_was():
    me = client()
    with pytest.raises(ProtocolError):
        me.send(MetadataRequest(topics='nonsense'))
    assert (me.state, me.in_flight) == (State.READY, 0)
    assert me.send(METADATA)[8:12] == b'\x00\x00\x00\x00'


def test_versions_may_be_asked_for_again_while_answers_are_due():
    """Features rise while a broker runs; the requests before keep their answers."""
    me, broker = client(), Session(Role.SERVER)
    broker.receive_data(me.send(METADATA) + me.negotiate())
    first, second = broker.next_event(), broker.next_event()
    me.receive_data(
        broker.respond(first.header, METADATA_ANSWER)
        + broker.respond(second.header, versions(k3=(0, 1)))
    )
    assert isinstance(me.next_event(), ResponseReceived)
    assert isinstance(me.next_event(), VersionsNegotiated)
    assert me.versions.ranges == {3: (0, 1)}


def test_a_broker_without_any_version_of_api_versions_fails_the_session():
    me = Session(Role.CLIENT)
    me.negotiate()
    me.receive_data(answered(0, versions(35), 0))
    assert isinstance(me.next_event(), SendData)
    me.receive_data(answered(1, versions(35), 0))
    with pytest.raises(UnsupportedVersionError):
        me.next_event()
    assert me.state is State.FAILED


# ---------------------------------------------------------------- throttling, limits


@pytest.mark.parametrize(('version', 'waits'), [(5, False), (6, True)])
def test_throttle_time_tells_whether_the_client_has_to_wait(version, waits):
    """KIP-219: from Metadata 6 on the broker answers first and the client waits."""
    me = client()
    me.send(METADATA, version=version)
    slow = MetadataResponse(throttle_time_ms=40, brokers=[], topics=[])
    event = event_of(me, answered(0, slow, version))
    assert (event.throttle_time_ms, event.client_throttles) == (40, waits)


INIT = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
INIT_ANSWER = InitProducerIdResponse(throttle_time_ms=40, error_code=0, producer_epoch=0)
DELETE = OffsetDeleteRequest(group_id='g', topics=[])
DELETE_ANSWER = OffsetDeleteResponse(error_code=0, throttle_time_ms=40, topics=[])


@pytest.mark.parametrize(
    ('request_', 'response', 'version', 'waits'),
    [
        (INIT, INIT_ANSWER, 0, False),  # as old as throttling by the broker
        (INIT, INIT_ANSWER, 1, True),
        (DELETE, DELETE_ANSWER, 0, True),  # younger than KIP-219
    ],
)
def test_throttling_of_apis_without_an_entry_of_their_own(request_, response, version, waits):
    me = client({22: (0, 1), 47: (0, 0)})
    me.send(request_, version=version)
    assert event_of(me, answered(0, response, version)).client_throttles == waits


def test_without_throttle_time_nobody_waits():
    me = client()
    me.send(METADATA)
    event = event_of(me, answered(0))
    assert (event.throttle_time_ms, event.client_throttles) == (0, False)


def test_the_in_flight_limit_is_kept():
    me = client(max_in_flight=2)
    me.send(METADATA)
    me.send(METADATA)
    with pytest.raises(TooManyInFlightRequests):
        me.send(METADATA)
    event_of(me, answered(0))
    me.send(METADATA)


# ---------------------------------------------------------------- states


def session_in(state):
    """A client's session in `state`, reached by ways that are allowed."""
    me = Session(Role.CLIENT)
    if state is State.NEGOTIATING:
        me.negotiate()
    elif state is State.READY:
        me.adopt(BrokerVersions({3: (0, 9)}))
    elif state is State.LOGGING_IN:
        me.adopt(BrokerVersions({3: (0, 9), 36: (0, 2)}))
        me.begin_login()
    elif state is State.CLOSED:
        me.close()
    elif state is State.FAILED:
        me.receive_data(b'\xff\xff\xff\xff')
        with pytest.raises(FrameError):
            me.next_event()
    assert me.state is state
    return me


ACTS = {
    Input.NEGOTIATE: Session.negotiate,
    Input.ADOPT: lambda me: me.adopt(BrokerVersions({})),
    Input.SEND: lambda me: me.send(METADATA),
    Input.BEGIN_LOGIN: Session.begin_login,
    Input.STEP: lambda me: me.send_token(b''),
    Input.END_LOGIN: Session.end_login,
    Input.CLOSE: Session.close,
}


@pytest.mark.parametrize('act', ACTS)
@pytest.mark.parametrize('state', State)
def test_every_act_is_allowed_in_exactly_the_states_of_the_table(state, act):
    me = session_in(state)
    if act in TRANSITIONS[state]:
        ACTS[act](me)
        assert me.state is TRANSITIONS[state][act]
    else:
        with pytest.raises(IllegalStateError) as caught:
            ACTS[act](me)
        assert state.value in str(caught.value)
        assert all(s.value in str(caught.value) for s in State if act in TRANSITIONS[s])
        assert me.state is state


def test_the_table_knows_every_state_and_leads_only_to_states():
    assert set(TRANSITIONS) == set(State)
    assert {after for moves in TRANSITIONS.values() for after in moves.values()} <= set(State)


def test_a_server_sends_no_requests_and_a_client_answers_none():
    broker = Session(Role.SERVER)
    with pytest.raises(IllegalStateError):
        broker.send(METADATA)
    with pytest.raises(IllegalStateError):
        broker.negotiate()
    me, broker = client(), Session(Role.SERVER)
    asked = event_of(broker, me.send(METADATA))
    with pytest.raises(IllegalStateError):
        me.respond(asked.header, METADATA_ANSWER)


# ---------------------------------------------------------------- closing


def test_the_peers_closing_is_an_event_that_names_what_stays_unanswered():
    me = client()
    me.send(METADATA)
    me.receive_data(answered(0)[:9])
    me.receive_data(b'')
    assert me.next_event() == ConnectionClosed(inside_frame=True, unanswered=(METADATA,))
    assert me.state is State.CLOSED
    with pytest.raises(IllegalStateError, match='closed'):
        me.next_event()


def test_what_came_before_the_closing_is_delivered_first():
    me = client()
    me.send(METADATA)
    me.receive_data(answered(0))
    me.receive_data(b'')
    assert isinstance(me.next_event(), ResponseReceived)
    assert me.next_event() == ConnectionClosed(inside_frame=False, unanswered=())


# ---------------------------------------------------------------- bad peers


def test_a_web_server_is_recognised():
    me = client()
    me.send(METADATA)
    me.receive_data(b'HTTP/1.1 400 Bad Request\r\n\r\n')
    with pytest.raises(FrameError, match='HTTP'):
        me.next_event()
    assert me.state is State.FAILED


def test_the_frame_limit_is_the_sessions():
    me = client(max_frame_bytes=100)
    me.receive_data(b'\x00\x00\x00\x65')
    with pytest.raises(FrameError, match='the limit is 100'):
        me.next_event()


@pytest.mark.parametrize('short', [b'', b'\x00\x00\x00'])
def test_a_response_without_correlation_id_fails_the_session(short):
    me = client()
    me.send(METADATA)
    me.receive_data(frame(short))
    with pytest.raises(ProtocolError, match='no correlation id'):
        me.next_event()
    assert me.state is State.FAILED


def test_a_cut_off_message_fails_the_session():
    me = client()
    me.send(METADATA)
    me.receive_data(frame(answered(0)[4:-1]))
    with pytest.raises((ProtocolError, BufferUnderflowError)):
        me.next_event()
    assert me.state is State.FAILED


@given(st.binary(max_size=200))
def test_a_client_survives_any_answer_with_documented_errors(garbage):
    me = Session(Role.CLIENT)
    me.negotiate()
    me.receive_data(frame(b'\x00\x00\x00\x00' + garbage))
    try:
        event = me.next_event()
    except KafkaError:
        assert me.state is State.FAILED
    else:
        assert isinstance(event, (SendData, VersionsNegotiated))


@given(st.sampled_from([0, 1, 2, 3, 8, 9, 10, 18, 19]), st.integers(0, 14), st.binary(max_size=80))
def test_a_server_survives_any_request_with_documented_errors(key, version, garbage):
    broker = Session(Role.SERVER)
    start = key.to_bytes(2, 'big') + version.to_bytes(2, 'big') + b'\x00\x00\x00\x07\xff\xff'
    broker.receive_data(frame(start + garbage))
    try:
        event = broker.next_event()
    except KafkaError:
        assert broker.state is State.FAILED
    else:
        assert isinstance(event, (RequestReceived, UnsupportedRequest))


# ---------------------------------------------------------------- the server's choices


@pytest.mark.parametrize(
    ('key', 'version', 'supported'), [(3, 9, (0, 5)), (3, 1, (2, 5)), (999, 0, None), (1, 0, None)]
)
def test_what_a_server_does_not_serve_is_an_event(key, version, supported):
    served = {3: supported} if key == 3 else {3: (0, 5)}
    broker = Session(Role.SERVER, supported=served)
    data = (
        key.to_bytes(2, 'big')  # api key
        + version.to_bytes(2, 'big')  # api version
        + b'\x00\x00\x00\x07'  # correlation id
        + b'\x00\x02me'  # client id
    )
    event = event_of(broker, frame(data))
    assert isinstance(event, UnsupportedRequest)
    assert tuple(event.header) == (key, version, 7, None)
    assert (event.supported, event.data) == (supported, data)


def test_a_server_that_names_nothing_serves_what_the_package_can_read():
    broker = Session(Role.SERVER)
    event = event_of(broker, frame(b'\x00\x12\x00\x63' + b'\x00\x00\x00\x07' + b'\xff\xff'))
    assert event.supported == (ApiVersionsRequest.min_version, ApiVersionsRequest.max_version)


@pytest.mark.parametrize('short', [b'', b'\x00\x03\x00\x00\x00\x00\x00'])
def test_a_request_without_header_fails_the_session(short):
    broker = Session(Role.SERVER)
    broker.receive_data(frame(short))
    with pytest.raises(ProtocolError, match='no header'):
        broker.next_event()
    assert broker.state is State.FAILED


# ---------------------------------------------------------------- drivers that cut frames


def test_a_driver_may_hand_in_whole_frames():
    me = client()
    me.send(METADATA)
    assert me.receive_frame(answered(0)[4:]).response == METADATA_ANSWER
    with pytest.raises(CorrelationIdError):
        me.receive_frame(answered(0)[4:])
    with pytest.raises(IllegalStateError):
        me.receive_frame(answered(1)[4:])


@pytest.mark.parametrize('step', [1, 3, 4, 5, 1000])
def test_taking_bytes_gives_the_events_however_they_are_cut(step):
    me = client()
    me.send(METADATA)
    me.send(METADATA)
    data, events = answered(0) + answered(1), []
    for start in range(0, len(data), step):
        event = me.take(data[start : start + step])
        while event is not NEED_DATA:
            events.append((event.correlation_id, event.response))
            event = me.next_event()
    assert events == [(0, METADATA_ANSWER), (1, METADATA_ANSWER)]
    assert isinstance(me.take(b''), ConnectionClosed)


@pytest.mark.parametrize('wrong', [answered(7), b'HTTP/1.1 400', frame(b'ab')])
def test_taking_what_is_wrong_fails_the_session(wrong):
    me = client()
    me.send(METADATA)
    with pytest.raises(KafkaError):
        me.take(wrong)
    assert me.state is State.FAILED


def test_a_response_in_pieces_is_the_same_response():
    server = Session(Role.SERVER)
    answers = []
    for respond in (server.respond, server.respond_in_parts):
        server.receive_data(Session(Role.CLIENT).negotiate())
        event = server.next_event()
        answers.append(respond(event.header, ApiVersionsResponse(error_code=0, api_keys=[])))
    assert answers[0] == b''.join(answers[1])


def test_repr_shows_role_state_and_what_is_in_flight():
    me = client()
    me.send(METADATA)
    assert repr(me) == '<Session client ready client_id=me in_flight=1>'
    assert me.missing_bytes == 4
