"""A message that can't be written names the field and what is wrong with it."""

from __future__ import annotations

import pytest

from kafka.errors import ProtocolError
from kafka.protocol.admin.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from kafka.protocol.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from kafka.protocol.find_coordinator import FindCoordinatorRequest
from kafka.protocol.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafka.protocol.metadata import MetadataRequest, MetadataRequestTopic
from kafka.protocol.sasl import SaslAuthenticateRequest


def refused(message, version):
    with pytest.raises(ProtocolError) as caught:
        message.encode(version)
    return str(caught.value).replace('ProtocolError: ', '')


def fetch(**changes):
    given = {'max_wait_ms': 1, 'min_bytes': 2, 'topics': [], **changes}
    return FetchRequest(**given)


@pytest.mark.parametrize(
    'changes, words',
    [
        ({'max_wait_ms': 'soon'}, 'FetchRequest.max_wait_ms must be int, not str'),
        ({'max_wait_ms': None}, 'FetchRequest.max_wait_ms must not be null in version 12'),
        ({'max_wait_ms': 1.5}, 'FetchRequest.max_wait_ms must be int, not float'),
        (
            {'max_wait_ms': 2**31},
            'FetchRequest.max_wait_ms is 2147483648, which does not fit Int32',
        ),
        ({'isolation_level': 128}, 'FetchRequest.isolation_level is 128, which does not fit Int8'),
        ({'rack_id': b'r'}, 'FetchRequest.rack_id must be str, not bytes'),
        ({'rack_id': '\ud800'}, 'FetchRequest.rack_id cannot be encoded as UTF-8'),
        ({'rack_id': None}, 'FetchRequest.rack_id must not be null in version 12'),
        ({'cluster_id': 5}, 'FetchRequest.cluster_id must be str, not int'),
        ({'topics': None}, 'FetchRequest.topics must not be null in version 12'),
        ({'topics': 't'}, 'FetchRequest.topics must be a list, not str'),
        ({'topics': 5}, 'FetchRequest.topics must be a list, not int'),
        ({'topics': ['t']}, 'FetchRequest.topics[0] must be FetchTopic, not str'),
    ],
)
def test_wrong_values_are_named(changes, words):
    assert refused(fetch(**changes), 12) == words


def test_the_way_to_a_nested_field_is_told():
    good = FetchPartition(0, fetch_offset=1, partition_max_bytes=1)
    bad = FetchPartition(1, fetch_offset='1', partition_max_bytes=1)
    topics = [FetchTopic('a', partitions=[good]), FetchTopic('b', partitions=[good, bad])]
    expected = 'FetchRequest.topics[1].partitions[1].fetch_offset must be int, not str'
    assert refused(fetch(topics=topics), 4) == expected


def test_elements_of_plain_arrays_are_named():
    forgotten = [ForgottenTopic('t', partitions=[1, 'two'])]
    expected = 'FetchRequest.forgotten_topics_data[0].partitions[1] must be int, not str'
    assert refused(fetch(forgotten_topics_data=forgotten), 7) == expected


def test_bytes_are_no_array_of_numbers():
    partition = ListOffsetsPartitionResponse(0, 0, old_style_offsets=b'12')
    response = ListOffsetsResponse(topics=[ListOffsetsTopicResponse('t', partitions=[partition])])
    assert refused(response, 0).endswith('old_style_offsets must be a list, not bytes')


def test_a_uuid_has_16_bytes():
    for wrong in (b'short', b'x' * 17):
        topics = [FetchTopic(topic_id=wrong, partitions=[])]
        assert refused(fetch(topics=topics), 13).endswith('must have 16 bytes, got %d' % len(wrong))
    topics = [FetchTopic(topic_id='x' * 16, partitions=[])]
    assert refused(fetch(topics=topics), 13).endswith('topic_id must be bytes, not str')


def test_a_long_string_needs_a_flexible_version():
    request = FindCoordinatorRequest(key='k' * 32768)
    words = 'FindCoordinatorRequest.key must have at most 32767 bytes, got 32768'
    assert refused(request, 0) == words
    assert FindCoordinatorRequest.decode(request.encode(3), 3) == request


@pytest.mark.parametrize('value', [None, 'false', b'', [], 1.0])
def test_only_numbers_and_booleans_are_booleans(value):
    request = MetadataRequest(topics=[], allow_auto_topic_creation=value)
    assert 'MetadataRequest.allow_auto_topic_creation' in refused(request, 4)


def test_a_float_field_takes_any_number():
    def request(value):
        entry = AlterClientQuotasRequestEntryData(entity=[], ops=[OpData('k', value, False)])
        return AlterClientQuotasRequest(entries=[entry], validate_only=False)

    assert AlterClientQuotasRequest.decode(request(1).encode(0), 0) == request(1.0)
    assert refused(request('1'), 0).endswith('entries[0].ops[0].value must be a number')


def test_null_is_named_with_the_version_that_refuses_it():
    request = MetadataRequest(topics=None)
    assert refused(request, 0) == 'MetadataRequest.topics must not be null in version 0'
    topics = [MetadataRequestTopic(name=None)]
    expected = 'MetadataRequest.topics[0].name must not be null in version 9'
    assert refused(MetadataRequest(topics=topics), 9) == expected


def test_the_value_of_a_secret_is_not_told():
    words = refused(SaslAuthenticateRequest(auth_bytes='canary'), 0)
    assert words == 'SaslAuthenticateRequest.auth_bytes does not fit its type'


def test_python_s_own_error_is_kept_as_the_cause():
    with pytest.raises(ProtocolError) as caught:
        fetch(max_wait_ms='soon').encode(4)
    assert caught.value.__cause__ is not None
