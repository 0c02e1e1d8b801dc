"""The probe against scripted brokers: each behaves as the release was seen to behave."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from kafka.errors import CorrelationIdError, KafkaConnectionError, UnsupportedVersionError
from kafka.protocol import api
from kafka.protocol.api_versions import ApiVersion, ApiVersionsResponse
from kafka.protocol.frames import FrameReader
from kafka.protocol.metadata import MetadataResponse
from kafka.protocol.probe import OLD_RELEASES, probe_versions

CLOSES, SILENT = 'closes', 'silent'
PRODUCE, METADATA, OFFSET_FETCH, HEARTBEAT, LIST_GROUPS, API_VERSIONS = 0, 3, 9, 12, 16, 18


def versions_answer(highest, **fields):
    """Answer ApiVersions as brokers do that know it up to `highest`."""

    def answer(header):
        if header.api_version <= highest:
            keys = [ApiVersion(0, 0, 8), ApiVersion(4, 0, 2), ApiVersion(18, 0, highest)]
            return ApiVersionsResponse(error_code=0, api_keys=keys, **fields), header.api_version
        keys = [ApiVersion(18, 0, highest)] if highest else []  # 0.10 lists nothing
        return ApiVersionsResponse(error_code=35, api_keys=keys), 0

    return answer


def metadata_answer(header):
    return MetadataResponse(brokers=[], topics=[]), 0


def mark_answer(header):
    fields = {
        OFFSET_FETCH: {'topics': []},
        HEARTBEAT: {'error_code': -1},
        LIST_GROUPS: {'error_code': 0, 'groups': []},
    }[header.api_key]
    return api.response_class(header.api_key)(**fields), 0


BROKERS = {
    '0.8.0': {METADATA: metadata_answer},
    '0.8.1': {METADATA: metadata_answer, OFFSET_FETCH: mark_answer},
    '0.8.2': {METADATA: metadata_answer, OFFSET_FETCH: mark_answer, HEARTBEAT: mark_answer},
    '0.9': {METADATA: metadata_answer, API_VERSIONS: SILENT},
    '0.10': {METADATA: metadata_answer, API_VERSIONS: versions_answer(0)},
    '2.4': {METADATA: metadata_answer, API_VERSIONS: versions_answer(3)},
    '4.4': {METADATA: metadata_answer, API_VERSIONS: versions_answer(5)},
}


class Outcome(NamedTuple):
    result: object
    connections: int
    requests: list  # api keys, in the order in which the broker read them


def drive(broker, lose_first_connection=False):
    """Run the probe against a scripted broker; return what came out."""
    probe = probe_versions('me')
    requests, connections = [], 1
    lost = lose_first_connection
    reader, answers = FrameReader(), []
    step = next(probe)
    while True:
        if step.reconnect:
            reader, answers, lost = FrameReader(), [], False
            connections += 1
        reader.receive_data(step.data)
        for data in iter(reader.next_frame, None):
            header = api.decode_request(data)[0]
            requests.append(header.api_key)
            behaviour = CLOSES if lost else broker.get(header.api_key, CLOSES)
            if behaviour is CLOSES:
                answers.append(None)
                break  # what follows is not read any more
            if behaviour is not SILENT:
                message, version = behaviour(header)
                answers.append(api.encode_response(message, version, header.correlation_id))
        try:
            step = probe.send(answers.pop(0))
        except StopIteration as done:
            return Outcome(done.value, connections, requests)


@pytest.mark.parametrize(
    ('release', 'connections', 'connected'),
    [('0.8.0', 3, False), ('0.8.1', 3, True), ('0.8.2', 2, False), ('0.9', 1, True)],
)
def test_releases_that_cannot_list_are_inferred(release, connections, connected):
    outcome = drive(BROKERS[release])
    assert outcome.result.release == release
    assert outcome.result.versions.ranges == OLD_RELEASES[release]
    assert (outcome.connections, outcome.result.connected) == (connections, connected)


@pytest.mark.parametrize(
    ('release', 'questions'),
    [
        ('0.10', [API_VERSIONS, METADATA, API_VERSIONS]),
        ('2.4', [API_VERSIONS, METADATA, API_VERSIONS]),
        ('4.4', [API_VERSIONS, METADATA]),
    ],
)
def test_later_releases_list_and_cost_no_connection(release, questions):
    outcome = drive(BROKERS[release])
    assert outcome.result.release is None
    assert outcome.result.versions.ranges[PRODUCE] == (0, 8)
    assert (outcome.connections, outcome.result.connected) == (1, True)
    assert outcome.requests == questions


def test_features_are_kept():
    broker = dict(BROKERS['4.4'])
    broker[API_VERSIONS] = versions_answer(5, finalized_features_epoch=3)
    assert drive(broker).result.versions.finalized_features_epoch == 3


def test_no_question_creates_a_topic():
    """Metadata names a topic that cannot exist; FindCoordinator would create the offsets' one."""
    for broker in BROKERS.values():
        assert 10 not in drive(broker).requests
    reader = FrameReader()
    reader.receive_data(next(probe_versions()).data)
    _, (header, metadata) = (api.decode_request(data) for data in iter(reader.next_frame, None))
    assert (header.api_key, header.api_version) == (METADATA, 0)
    assert [topic.name for topic in metadata.topics] == ['?']


@pytest.mark.parametrize('release', ['0.10', '2.4', '4.4'])
def test_a_connection_lost_for_another_reason_does_not_make_a_broker_old(release):
    """A connection that was idle for long is closed just when the question comes."""
    broker = dict(BROKERS[release])
    broker.update({HEARTBEAT: mark_answer, LIST_GROUPS: mark_answer})
    outcome = drive(broker, lose_first_connection=True)
    assert outcome.result.release is None
    assert (outcome.connections, outcome.result.connected) == (2, True)


def test_a_listener_with_sasl_closes_after_the_list():
    outcome = drive({API_VERSIONS: versions_answer(5)})
    assert outcome.result.versions.ranges[PRODUCE] == (0, 8)
    assert (outcome.connections, outcome.result.connected) == (1, False)


def test_a_listener_with_sasl_may_be_asked_again_on_a_new_connection():
    outcome = drive({API_VERSIONS: versions_answer(3)})
    assert outcome.result.versions.ranges[PRODUCE] == (0, 8)
    assert (outcome.connections, outcome.result.connected) == (2, True)


def test_a_port_that_closes_on_everything_is_an_error():
    with pytest.raises(KafkaConnectionError, match='TLS or SASL'):
        drive({})


def test_a_broker_that_closes_on_the_list_twice_and_is_not_old_is_an_error():
    broker = {METADATA: metadata_answer, HEARTBEAT: mark_answer, LIST_GROUPS: mark_answer}
    with pytest.raises(KafkaConnectionError, match='when asked for its versions'):
        drive(broker)


def test_an_answer_to_another_question_is_an_error():
    probe = probe_versions()
    next(probe)
    with pytest.raises(CorrelationIdError):
        probe.send(api.encode_response(MetadataResponse(brokers=[], topics=[]), 0, 5))


def test_an_answer_too_short_for_a_correlation_id_is_an_error():
    probe = probe_versions()
    next(probe)
    with pytest.raises(CorrelationIdError):
        probe.send(b'\x00')


def test_a_broker_that_refuses_every_version_of_the_question_is_an_error():
    def refuse(header):
        return ApiVersionsResponse(error_code=35, api_keys=[]), 0

    with pytest.raises(UnsupportedVersionError):
        drive({METADATA: metadata_answer, API_VERSIONS: refuse})


def test_no_answer_can_be_taken_for_one_to_the_connections_user():
    """The user counts correlation ids from 0 up."""
    reader = FrameReader()
    reader.receive_data(next(probe_versions()).data)
    ids = [api.decode_request(data)[0].correlation_id for data in iter(reader.next_frame, None)]
    assert all(number < 0 for number in ids)
    assert len(set(ids)) == len(ids)
