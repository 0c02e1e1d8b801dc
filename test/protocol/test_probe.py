"""The probe against scripted brokers: each behaves as the release was seen to behave."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from kafka.errors import (
    CorrelationIdError,
    KafkaConnectionError,
    ProtocolError,
    UnsupportedVersionError,
)
from kafka.protocol import api
from kafka.protocol.api_versions import ApiVersion, ApiVersionsResponse
from kafka.protocol.frames import FrameReader
from kafka.protocol.metadata import MetadataResponse, MetadataResponseTopic
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


def metadata_answer(highest):
    """Answer Metadata in the best layout there is; old brokers do not look at the version."""

    def answer(header):
        topic = MetadataResponseTopic(error_code=17, name='?', partitions=[])
        return MetadataResponse(brokers=[], topics=[topic]), min(header.api_version, highest)

    return answer


def mark_answer(header):
    fields = {
        OFFSET_FETCH: {'topics': []},
        HEARTBEAT: {'error_code': -1},
        LIST_GROUPS: {'error_code': 0, 'groups': []},
    }[header.api_key]
    return api.response_class(header.api_key)(**fields), 0


OLD, NEW = {METADATA: metadata_answer(0)}, {METADATA: metadata_answer(1)}
BROKERS = {
    '0.8.0': OLD,
    '0.8.1': {**OLD, OFFSET_FETCH: mark_answer},
    '0.8.2': {**OLD, OFFSET_FETCH: mark_answer, HEARTBEAT: mark_answer},
    '0.9': {
        **OLD,
        OFFSET_FETCH: mark_answer,
        HEARTBEAT: mark_answer,
        LIST_GROUPS: mark_answer,
        API_VERSIONS: SILENT,
    },
    '0.10': {**NEW, API_VERSIONS: versions_answer(0)},
    '2.4': {**NEW, API_VERSIONS: versions_answer(3)},
    '4.4': {**NEW, API_VERSIONS: versions_answer(5)},
}


class Outcome(NamedTuple):
    result: object
    connections: int
    requests: list  # api keys, in the order in which the broker read them


def drive(broker, lose_first_connection=False, lost_at=()):
    """Run the probe against a scripted broker; return what came out.

    Arguments: lost_at: numbers of requests, from 0 on, whose connection breaks without an answer.
    """
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
            is_lost = lost or len(requests) - 1 in lost_at
            behaviour = CLOSES if is_lost else broker.get(header.api_key, CLOSES)
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
    [('0.8.0', 4, False), ('0.8.1', 3, True), ('0.8.2', 2, False), ('0.9', 1, True)],
)
def test_releases_that_cannot_list_are_inferred(release, connections, connected):
    outcome = drive(BROKERS[release])
    assert outcome.result.release == release
    assert outcome.result.versions.ranges == OLD_RELEASES[release]
    assert (outcome.connections, outcome.result.connected) == (connections, connected)


@pytest.mark.parametrize(
    ('release', 'questions'),
    [
        ('0.10', [METADATA, API_VERSIONS, API_VERSIONS]),
        ('2.4', [METADATA, API_VERSIONS, API_VERSIONS]),
        ('4.4', [METADATA, API_VERSIONS]),
    ],
)
def test_later_releases_list_and_cost_no_connection(release, questions):
    outcome = drive(BROKERS[release])
    assert outcome.result.release is None
    assert outcome.result.versions.ranges[PRODUCE] == (0, 8)
    assert (outcome.connections, outcome.result.connected) == (1, True)
    assert outcome.requests == questions


@pytest.mark.parametrize('release', ['0.8.0', '0.8.1', '0.8.2', '0.9'])
def test_nobody_gets_a_question_that_does_not_know_it(release):
    """ApiVersions makes 0.9 forget the connections of others, and costs a connection on 0.8."""
    assert API_VERSIONS not in drive(BROKERS[release]).requests


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
    ((header, metadata),) = (api.decode_request(data) for data in iter(reader.next_frame, None))
    assert (header.api_key, header.api_version) == (METADATA, 1)
    assert [topic.name for topic in metadata.topics] == ['?']


@pytest.mark.parametrize('release', ['0.8.2', '0.9', '0.10', '2.4', '4.4'])
def test_a_connection_lost_for_another_reason_does_not_make_a_broker_another(release):
    """A connection that was idle for long is closed just when the question comes."""
    outcome, whole = drive(BROKERS[release], lose_first_connection=True), drive(BROKERS[release])
    assert outcome.result == whole.result
    assert outcome.connections == whole.connections + 1


@pytest.mark.parametrize('release', BROKERS)
def test_a_connection_that_breaks_makes_no_broker_an_older_one(release):
    whole = drive(BROKERS[release]).result
    for number in range(len(drive(BROKERS[release]).requests)):
        try:
            found = drive(BROKERS[release], lost_at=[number]).result
        except KafkaConnectionError:  # it is tried again
            assert release.startswith('0.8')
        else:
            assert found.release == whole.release
            assert found.versions.ranges == whole.versions.ranges


def test_a_broker_whose_connection_breaks_at_a_mark_is_asked_on_another_one():
    for number in (1, 2):
        outcome = drive(BROKERS['0.9'], lost_at=[number])
        assert (outcome.result.release, outcome.connections) == ('0.9', 2)


def test_a_release_is_not_told_while_connections_break_at_what_all_releases_know():
    with pytest.raises(KafkaConnectionError, match='its release cannot be determined'):
        drive(BROKERS['0.9'], lost_at=[1, 2])


@pytest.mark.parametrize('highest', [3, 5])
def test_a_listener_with_sasl_closes_at_metadata_and_answers_the_list(highest):
    outcome = drive({API_VERSIONS: versions_answer(highest)})
    assert outcome.result.versions.ranges[PRODUCE] == (0, 8)
    assert (outcome.connections, outcome.result.connected) == (3, True)


def test_a_port_that_closes_on_everything_is_an_error():
    with pytest.raises(KafkaConnectionError, match='this port may want TLS'):
        drive({})


def test_a_broker_that_is_not_old_and_closes_on_the_list_is_an_error():
    with pytest.raises(KafkaConnectionError, match='did not respond to ApiVersions'):
        drive(NEW)


def test_an_answer_that_is_none_to_metadata_is_an_error():
    probe = probe_versions()
    next(probe)
    with pytest.raises(ProtocolError, match='not one to Metadata'):
        probe.send(b'\xff\xff\xff\xfe' + b'\x7f' * 9)


@pytest.mark.parametrize('version', [0, 1])
def test_a_broker_that_leaves_the_topic_out_is_told_by_the_layout(version):
    def answer(header):
        return MetadataResponse(brokers=[], topics=[]), version

    release = drive({**BROKERS['0.9' if version == 0 else '4.4'], METADATA: answer}).result.release
    assert release == ('0.9' if version == 0 else None)


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
        drive({**NEW, API_VERSIONS: refuse})


def test_no_answer_can_be_taken_for_one_to_the_connections_user():
    """The user counts correlation ids from 0 up."""
    reader = FrameReader()
    reader.receive_data(next(probe_versions()).data)
    ids = [api.decode_request(data)[0].correlation_id for data in iter(reader.next_frame, None)]
    assert all(number < 0 for number in ids)
    assert len(set(ids)) == len(ids)
