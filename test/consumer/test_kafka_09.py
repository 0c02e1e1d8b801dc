"""kafka.consumer.kafka_09: configuring, positions and closing of 0.9.5's KafkaConsumer."""

from __future__ import annotations

from unittest import mock

import pytest

from kafka.consumer import KafkaConsumer
from kafka.consumer.kafka import OffsetsStruct
from kafka.errors import (
    FailedPayloadsError,
    KafkaConfigurationError,
    KafkaUnavailableError,
    LeaderNotAvailableError,
    NotLeaderForPartitionError,
    OffsetOutOfRangeError,
    ProtocolError,
    UnknownError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from kafka.structs import OffsetFetchResponse, OffsetRequest, OffsetResponse
from test.consumer.helpers_09 import (
    SERVERS,
    Factory,
    TopicsClient,
    consumer,
    places,
)

ZERO, ONE = (b'topic', 0), (b'topic', 1)


def positions(made):
    return made.offsets('fetch')


# ---------------------------------------------------------------- configure


def test_the_client_gets_servers_name_and_the_timeout_in_seconds(clock_09, install):
    client = TopicsClient(clock_09)
    factory = install(client)
    made = KafkaConsumer(
        metadata_broker_list=['one:1', 'two:2'], client_id='me', socket_timeout_ms=2500
    )
    assert factory.made == [(['one:1', 'two:2'], 'me', 2.5)]
    assert made._client is client and made._config['client_id'] == 'me'


def test_the_client_is_called_and_waits_as_the_defaults_say(clock_09, install):
    factory = install(TopicsClient(clock_09))
    consumer()
    assert factory.made == [(SERVERS, 'kafka.consumer.kafka', 30.0)]


def test_configure_sets_what_is_not_given_back_to_its_default(serve):
    client = serve((0, 5))
    made = consumer(fetch_min_bytes=7)
    made.configure(bootstrap_servers=SERVERS)
    next(made)
    assert client.called('send_fetch_request')[-1][1]['min_bytes'] == 1


def test_configure_keeps_positions_and_closes_the_former_client(clock_09, install):
    first, second = TopicsClient(clock_09, (0, 9)), TopicsClient(clock_09, (0, 9))
    install(first, second)
    made = consumer()
    assert places([next(made), next(made)]) == [(0, 0), (0, 1)]
    made.configure(bootstrap_servers=SERVERS)
    assert made._client is second
    assert (first.closed, second.closed) == (1, 0)
    assert places([next(made)]) == [(0, 2)]


@pytest.mark.parametrize(
    'configs, error',
    [
        ({'bootstrap_servers': SERVERS, 'nonsense': 1}, KafkaConfigurationError),
        ({'bootstrap_servers': []}, KafkaConfigurationError),
        ({'bootstrap_servers': SERVERS, 'group_id': 7}, TypeError),
        ({'bootstrap_servers': SERVERS}, KafkaUnavailableError),
    ],
)
def test_configure_that_fails_changes_nothing(clock_09, install, configs, error):
    client = TopicsClient(clock_09, (0, 9))
    install(client, KafkaUnavailableError('down'))
    made = consumer(fetch_message_max_bytes=777)
    with pytest.raises(error):
        made.configure(**configs)
    assert (made._client is client, client.closed) == (True, 0)
    next(made)
    assert client.asked() == [[(0, 0, 777)]]


def test_a_subclass_may_have_other_defaults(serve):
    client = serve((0, 5))

    class Mine(KafkaConsumer):
        DEFAULT_CONFIG = dict(
            KafkaConsumer.DEFAULT_CONFIG, auto_offset_reset='smallest', fetch_message_max_bytes=99
        )

    made = Mine('topic', bootstrap_servers=SERVERS, dialect='0.9.5')
    next(made)
    assert client.asked() == [[(0, 0, 99)]]


def test_configuring_does_not_close_a_subclass_by_its_own_method(serve):
    client = serve()

    class Mine(KafkaConsumer):
        def __init__(self, *topics, **configs):
            super().__init__(*topics, **configs)
            self.log = ['open']

        def close(self):
            self.log.append('closed')
            super().close()

    made = Mine(b'topic', bootstrap_servers=SERVERS)
    made.configure(bootstrap_servers=SERVERS)
    assert (made.log, client.closed) == (['open'], 1)
    made.close()
    assert (made.log, client.closed) == (['open', 'closed'], 2)


def test_a_client_replaced_in_kafka_consumer_kafka_is_used():
    with mock.patch('kafka.consumer.kafka.KafkaClient') as replaced:
        made = KafkaConsumer(dialect='0.9.5', bootstrap_servers=SERVERS)
    assert made._client is replaced.return_value
    assert replaced.call_args == mock.call(SERVERS, client_id='kafka.consumer.kafka', timeout=30.0)


def test_the_constructor_goes_through_methods_that_a_subclass_replaced(serve):
    serve()
    calls = []

    class Mine(KafkaConsumer):
        def configure(self, **configs):
            calls.append(configs)
            super().configure(**configs)

        def set_topic_partitions(self, *topics):
            calls.append(topics)
            super().set_topic_partitions(*topics)

    Mine(b'topic', bootstrap_servers=SERVERS)
    assert calls == [{'bootstrap_servers': SERVERS}, (b'topic',)]


# ---------------------------------------------------------------- set_topic_partitions


def test_metadata_of_all_topics_is_loaded_first(serve):
    client = serve((0, 5))
    consumer()
    assert [name for name, _, _ in client.calls][0] == 'load_metadata_for_topics'
    assert client.called('load_metadata_for_topics') == [((), {})]


@pytest.mark.parametrize('policy, start', [('smallest', 3), ('largest', 8)])
def test_positions_are_numbers_after_the_constructor(serve, policy, start):
    client = serve((3, 8), (3, 8))
    made = consumer(auto_offset_reset=policy)
    assert positions(made) == {ZERO: start, ONE: start}
    assert len(client.called('send_offset_request')) == 1
    client.logs = {0: (3, 9), 1: (3, 9)}
    assert positions(made) == {ZERO: start, ONE: start}
    assert {m.offset for m in (next(made), next(made))} <= {start, start + 1}


def test_a_given_offset_comes_before_a_stored_one_before_the_policy(serve):
    client = serve((0, 9), (0, 9), (0, 9))
    client.stored = {0: 4, 1: 5}
    made = consumer(('topic', 0, 7), ('topic', 1), ('topic', 2), group_id='g')
    assert positions(made) == {ZERO: 7, ONE: 5, (b'topic', 2): 0}
    assert made.offsets('commit') == {ZERO: 4, ONE: 5, (b'topic', 2): None}
    (((group, requests), _),) = client.called('send_offset_fetch_request')
    assert group == b'g'
    assert [tuple(request) for request in requests] == [(b'topic', p) for p in range(3)]
    (((asked,), _),) = client.called('send_offset_request')
    assert asked == [OffsetRequest(b'topic', 2, -2, 1)]


def test_offset_0_is_given_and_stored_like_any_other(serve):
    client = serve((0, 9), (0, 9))
    client.stored = {1: 0}
    made = consumer(('topic', 0, 0), ('topic', 1), group_id='g', auto_offset_reset='largest')
    assert positions(made) == {ZERO: 0, ONE: 0}
    assert client.called('send_offset_request') == []


def test_without_a_group_nothing_stored_is_asked_for(serve):
    client = serve((0, 9))
    consumer()
    assert client.called('send_offset_fetch_request') == []


def test_error_3_says_that_nothing_is_stored(serve):
    client = serve((2, 9))
    client.answers['send_offset_fetch_request'] = [[OffsetFetchResponse(b'topic', 0, -1, b'', 3)]]
    made = consumer(group_id='g')
    assert (positions(made), made.offsets('commit')) == ({ZERO: 2}, {ZERO: None})


@pytest.mark.parametrize(
    'answer, error',
    [
        ([OffsetFetchResponse(b'topic', 0, -1, b'', -1)], UnknownError),
        ([FailedPayloadsError(None)], FailedPayloadsError),
    ],
)
def test_stored_offsets_that_cannot_be_read_are_an_error(serve, answer, error):
    client = serve((0, 9))
    client.answers['send_offset_fetch_request'] = [answer]
    with pytest.raises(error):
        consumer(group_id='g')


def test_a_broker_that_stores_no_offsets_is_told_of_by_the_option(serve):
    client = serve((0, 9))
    client.answers['send_offset_fetch_request'] = [UnsupportedVersionError('does not have it')]
    with pytest.raises(UnsupportedVersionError, match='group_id .* 0.8.1'):
        consumer(group_id='g')


@pytest.mark.parametrize('policy', ['earliest', 'none', None, b'smallest', ['smallest']])
def test_without_a_policy_there_is_no_place_to_start(serve, policy):
    client = serve((0, 9))
    with pytest.raises(OffsetOutOfRangeError, match='auto_offset_reset'):
        consumer(auto_offset_reset=policy)
    made = consumer(('topic', 0, 4), auto_offset_reset=policy)
    assert positions(made) == {ZERO: 4}
    assert client.called('send_offset_request') == []


def test_a_constructor_that_fails_leaves_no_connection(serve):
    client = serve((0, 9))
    with pytest.raises(UnknownTopicOrPartitionError):
        consumer('typo')
    assert client.closed == 1


@pytest.mark.parametrize(
    'answer, error',
    [
        (LeaderNotAvailableError('no leader'), LeaderNotAvailableError),
        ([OffsetResponse(b'topic', 0, 6, ())], NotLeaderForPartitionError),
        ([OffsetResponse(b'topic', 0, 0, ())], ProtocolError),
        ([], ProtocolError),
    ],
)
def test_an_end_of_the_log_that_is_not_told_is_an_error(serve, answer, error):
    client = serve((0, 9))
    client.answers['send_offset_request'] = [answer]
    with pytest.raises(error):
        consumer()


def test_setting_partitions_again_replaces_everything(serve):
    client = serve((0, 9), (0, 9))
    made = consumer(group_id='g')
    made.task_done(next(made))
    made.set_topic_partitions({'topic': 1})
    assert made.offsets() == {
        'fetch': {ONE: 0},
        'highwater': {ONE: None},
        'commit': {ONE: None},
        'task_done': {ONE: None},
    }
    assert made.commit() is False
    assert places([next(made)]) == [(1, 0)]
    assert client.asked()[-1] == [(1, 0, 1048576)]


def test_what_was_fetched_before_setting_partitions_is_dropped(serve):
    serve((0, 9))
    made = consumer()
    assert places([next(made), next(made)]) == [(0, 0), (0, 1)]
    made.set_topic_partitions(('topic', 0, 1))
    assert places([next(made), next(made)]) == [(0, 1), (0, 2)]


def test_a_generator_of_the_former_partitions_ends(serve):
    serve((0, 9), (0, 9))
    made = consumer()
    messages = made.fetch_messages()
    next(messages)
    made.set_topic_partitions(('topic', 0, 0))
    assert list(messages) == []
    assert positions(made) == {ZERO: 0}


def test_setting_partitions_that_fails_keeps_the_former_ones(serve):
    serve((0, 9), (0, 9))
    made = consumer(('topic', 1, 3))
    with pytest.raises(UnknownTopicOrPartitionError):
        made.set_topic_partitions('topic', 'typo')
    assert positions(made) == {ONE: 3}
    assert places([next(made)]) == [(1, 3)]


def test_no_topics_are_no_error_until_they_are_fetched(serve):
    serve((0, 9))
    made = KafkaConsumer(bootstrap_servers=SERVERS, dialect='0.9.5')
    assert positions(made) == {}
    for fetch in (made.next, made.fetch_messages):
        with pytest.raises(KafkaConfigurationError, match='no topics'):
            fetch()
    made.set_topic_partitions(('topic', 0, 3))
    assert places([next(made)]) == [(0, 3)]


# ---------------------------------------------------------------- offsets


def test_offsets_shows_the_four_maps(serve):
    serve((0, 9), (0, 4))
    made = consumer({'topic': [0]}, group_id='g')
    made.task_done(next(made))
    made.commit()
    next(made)
    shown = {
        'fetch': {ZERO: 2},
        'highwater': {ZERO: 9},
        'commit': {ZERO: 1},
        'task_done': {ZERO: 0},
    }
    assert made.offsets() == shown
    assert {name: made.offsets(name) for name in OffsetsStruct._fields} == shown
    assert OffsetsStruct._fields == ('fetch', 'highwater', 'commit', 'task_done')


def test_offsets_are_copies(serve):
    serve((0, 9))
    made = consumer()
    made.offsets('fetch')[ZERO] = 7
    made.offsets()['fetch'].clear()
    assert positions(made) == {ZERO: 0}
    assert positions(made)['topic', 0] == 0


def test_another_map_is_a_value_error(serve):
    serve((0, 9))
    with pytest.raises(ValueError, match="not 'position'"):
        consumer().offsets('position')


@pytest.mark.parametrize('topic', ['topic', b'topic'])
def test_offsets_of_a_log_are_a_list(serve, topic):
    client = serve((3, 8))
    made = consumer()
    assert made.get_partition_offsets(topic, 0, -1, 1) == [8]
    assert made.get_partition_offsets(topic, 0, -2, 1) == [3]
    client.answers['send_offset_request'] = [[OffsetResponse(b'topic', 0, 0, (8, 5, 3))]]
    assert made.get_partition_offsets(topic, 0, 1234567890, 10) == [8, 5, 3]
    ((asked,), _) = client.called('send_offset_request')[-1]
    assert asked == [OffsetRequest(b'topic', 0, 1234567890, 10)]


@pytest.mark.parametrize(
    'arguments, name',
    [
        ((7, 0, -1, 1), 'topic'),
        (('topic', '0', -1, 1), 'partition'),
        (('topic', 0, '1', 1), 'request_time_ms'),
        (('topic', 0, -1, None), 'max_num_offsets'),
    ],
)
def test_wrong_arguments_of_get_partition_offsets_are_named(serve, arguments, name):
    client = serve((0, 9))
    made = consumer()
    before = len(client.calls)
    with pytest.raises(TypeError, match=name):
        made.get_partition_offsets(*arguments)
    assert len(client.calls) == before


def test_get_partition_offsets_raises_what_the_broker_reports(serve):
    client = serve((0, 9))
    made = consumer()
    client.answers['send_offset_request'] = [[OffsetResponse(b'topic', 0, 6, ())]]
    with pytest.raises(NotLeaderForPartitionError):
        made.get_partition_offsets('topic', 0, -1, 1)


# ---------------------------------------------------------------- close


def test_close_closes_the_client_and_commits_nothing(serve):
    client = serve((0, 9))
    made = consumer(group_id='g', auto_commit_enable=True)
    made.task_done(next(made))
    made.close()
    made.close()
    assert client.closed == 2
    assert client.called('send_offset_commit_request') == []


def test_a_closed_consumer_can_be_used_again(serve):
    serve((0, 9))
    made = consumer(group_id='g')
    first = next(made)
    made.close()
    assert places([next(made)]) == [(0, 1)]
    made.task_done(first)
    assert made.commit() is True


def test_a_factory_hands_out_clients_in_turn(clock_09):
    """The stand-in of these tests, which would hide a second client otherwise."""
    one, two = TopicsClient(clock_09), TopicsClient(clock_09)
    factory = Factory(one, two)
    assert factory('a', client_id='b', timeout=1) is one
    assert factory('a', client_id='b', timeout=1) is two
