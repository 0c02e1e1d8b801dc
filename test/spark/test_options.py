"""What Spark's options mean: names, defaults, precedence, refusals, as with the JVM connector."""

from __future__ import annotations

import logging
import pickle
from typing import Any, Dict, List

import pytest
from hypothesis import given
from hypothesis import strategies as some

from kafka.errors import InvalidOptionError, KafkaConfigurationError
from kafka.spark import options as options_module
from kafka.spark.options import Limit, SinkOptions, SourceOptions, Topics
from kafka.structs import TopicPartition

SERVERS = {'kafka.bootstrap.servers': 'h:1'}
BASE = {**SERVERS, 'subscribe': 't'}
T0, T1 = TopicPartition('t', 0), TopicPartition('t', 1)
CONFIG = {
    'bootstrap_servers': 'h:1',
    'allow_auto_create_topics': False,
    'enable_auto_commit': False,
    'bootstrap_timeout_ms': 60000,
}
OF_SINKS = {'bootstrap_servers': 'h:1', 'bootstrap_timeout_ms': 60000}

BATCH, STREAM = False, True


def source(is_streaming: bool = STREAM, **options: Any) -> SourceOptions:
    return SourceOptions.of({**BASE, **options}, is_streaming)


def sink(**options: Any) -> SinkOptions:
    return SinkOptions.of({**SERVERS, **options}, True)


# ---------------------------------------------------------------- what there is if nothing is said


def test_a_stream_begins_at_the_latest_offsets_and_has_no_end() -> None:
    assert source(STREAM) == SourceOptions(
        topics=Topics('subscribe', ('t',)), start=Limit('latest'), end=None, config=CONFIG
    )


def test_a_batch_reads_from_the_earliest_to_the_latest() -> None:
    assert source(BATCH) == SourceOptions(
        topics=Topics('subscribe', ('t',)),
        start=Limit('earliest'),
        end=Limit('latest'),
        config=CONFIG,
        group_id_prefix='spark-kafka-relation',
    )


def test_defaults_are_those_of_the_jvm_connector() -> None:
    found = source()
    assert (found.fail_on_data_loss, found.poll_timeout_ms) == (True, 120000)
    assert (found.retries, found.retry_interval_ms, found.max_delay) == (3, 1000, 900.0)
    assert found.api_timeout_ms == 60000
    assert found.group_id_prefix == 'spark-kafka-source'


def test_a_sink_needs_brokers_alone() -> None:
    assert sink() == SinkOptions(None, False, OF_SINKS, False, None)


# ---------------------------------------------------------------- what is read

TOPICS: Dict[Any, Any] = {
    ('subscribe', 'a'): Topics('subscribe', ('a',)),
    ('subscribe', ' b , a ,, b '): Topics('subscribe', ('b', 'a')),
    ('assign', '{"t":[1,0]}'): Topics('assign', partitions=(T0, T1)),
    ('assign', ' {} '): Topics('assign'),
}


@pytest.mark.parametrize('name, text', TOPICS)
def test_topics_are_said_in_one_of_three_ways(name: str, text: str) -> None:
    assert SourceOptions.of({**SERVERS, name: text}, STREAM).topics == TOPICS[name, text]


def test_a_pattern_is_searched_for_in_names() -> None:
    found = SourceOptions.of({**SERVERS, 'subscribePattern': r' \Qa.b\E|^c '}, STREAM).topics
    assert found.kind == 'subscribePattern' and found.pattern is not None
    assert found.pattern.search('xa.bx') and found.pattern.search('cd')
    assert not found.pattern.search('axb')


WRONG_TOPICS = {
    (): 'exactly one of the options assign, subscribe, subscribePattern is required$',
    (('subscribe', 'a'), ('assign', '{}')): 'is required, not assign and subscribe',
    (('subscribe', ' , '),): "subscribe must be topics, separated by commas, not ' , '",
    (('subscribe', 'a b'),): "subscribe: topic 'a b'",
    (('subscribe', '..'),): 'subscribe: topic',
    (('assign', 't'),): 'assign must be JSON such as',
    (('assign', '{"a b":[0]}'),): "assign: topic 'a b'",
    (('subscribePattern', ' '),): 'subscribePattern must be a pattern of Java that is not empty',
    (('subscribePattern', '*'),): 'subscribePattern must be a pattern.*nothing to repeat',
    (('subscribePattern', '[a&&b]'),): 'a set in a set is not supported at position 2',
}


@pytest.mark.parametrize('given', WRONG_TOPICS)
def test_what_to_read_has_to_be_said_once_and_well(given: Any) -> None:
    with pytest.raises(InvalidOptionError, match=WRONG_TOPICS[given]):
        SourceOptions.of({**SERVERS, **dict(given)}, BATCH)


def test_none_at_all_is_told_with_the_way_that_sql_has() -> None:
    with pytest.raises(
        InvalidOptionError, match=r'no options were given: a table .*CREATE TEMPORARY VIEW'
    ):
        SourceOptions.of({}, BATCH)


# ---------------------------------------------------------------- from where to where

OFFSETS, TIMES = '{"t":{"0":5}}', '{"t":{"0":1000}}'

STARTS: List[Any] = [
    (STREAM, 'startingOffsets', 'earliest', Limit('earliest')),
    (STREAM, 'startingOffsets', ' LATEST ', Limit('latest')),
    (BATCH, 'startingOffsets', 'Earliest', Limit('earliest')),
    (STREAM, 'startingOffsets', OFFSETS, Limit('offsets', {T0: 5})),
    (STREAM, 'startingOffsets', '{"t":{"0":-1,"1":-2}}', Limit('offsets', {T0: -1, T1: -2})),
    (BATCH, 'startingOffsets', ' {"t":{"0":-2}} ', Limit('offsets', {T0: -2})),
    (STREAM, 'startingTimestamp', ' 1000 ', Limit('timestamp', {}, 1000)),
    (STREAM, 'startingTimestamp', '+0', Limit('timestamp', {}, 0)),
    (STREAM, 'startingOffsetsByTimestamp', '{"t":{"0":0}}', Limit('timestamps', {T0: 0})),
    (BATCH, 'startingOffsetsByTimestamp', TIMES, Limit('timestamps', {T0: 1000})),
]


@pytest.mark.parametrize('is_streaming, name, text, limit', STARTS)
def test_a_start_is_a_word_or_offsets_or_times(
    is_streaming: bool, name: str, text: str, limit: Limit
) -> None:
    assert source(is_streaming, **{name: text}).start == limit


ENDS: List[Any] = [
    ('endingOffsets', 'latest', Limit('latest')),
    ('endingOffsets', '{"t":{"0":-1,"1":7}}', Limit('offsets', {T0: -1, T1: 7})),
    ('endingTimestamp', '1000', Limit('timestamp', {}, 1000, True)),
    ('endingOffsetsByTimestamp', TIMES, Limit('timestamps', {T0: 1000}, None, True)),
]


@pytest.mark.parametrize('name, text, limit', ENDS)
def test_an_end_is_said_likewise_and_where_no_record_is_it_is_the_end_of_the_log(
    name: str, text: str, limit: Limit
) -> None:
    assert source(BATCH, **{name: text}).end == limit


def test_a_time_counts_more_than_times_and_they_more_than_offsets() -> None:
    # What counts less is not even looked at.
    said = {'startingOffsets': 'nonsense', 'startingOffsetsByTimestamp': TIMES}
    assert source(**said).start.kind == 'timestamps'
    assert source(**said, startingTimestamp='7').start == Limit('timestamp', {}, 7)
    said = {'endingOffsets': 'nonsense', 'endingOffsetsByTimestamp': TIMES}
    found = source(BATCH, **said).end
    assert found is not None and found.kind == 'timestamps'
    found = source(BATCH, **said, endingTimestamp='7').end
    assert found == Limit('timestamp', {}, 7, True)


@pytest.mark.parametrize('text, is_lenient', [('error', False), ('ERROR', False), ('Latest', True)])
def test_a_strategy_says_whether_a_time_without_a_record_is_an_error(
    text: str, is_lenient: bool
) -> None:
    said = {'startingOffsetsByTimestampStrategy': text}
    assert source(**said, startingTimestamp='1').start.is_lenient is is_lenient
    assert source(**said, startingOffsetsByTimestamp=TIMES).start.is_lenient is is_lenient


STREAMS_ONLY = [
    {'startingOffsets': 'latest'},
    {'startingOffsets': '{"t":{"0":1,"1":-1}}'},
    {'commitOffsets': 'g'},
]


@pytest.mark.parametrize('options', STREAMS_ONLY)
def test_what_has_no_sense_in_a_batch_is_refused_there_alone(options: Dict[str, str]) -> None:
    source(STREAM, **options)
    with pytest.raises(InvalidOptionError, match=next(iter(options))):
        source(BATCH, **options)


@pytest.mark.parametrize('name, text, _', ENDS)
def test_a_stream_has_no_end(name: str, text: str, _: Limit) -> None:
    with pytest.raises(InvalidOptionError, match='%s is for batch queries' % name):
        source(STREAM, **{name: text})


CONTRADICTIONS = [
    ('{"t":{"0":5}}', '{"t":{"0":4}}', 'partition 0 they are 5 and 4'),
    ('{"t":{"0":1}}', '{"t":{"0":0}}', 'partition 0 they are 1 and 0'),
    ('{"t":{"0":5}}', '{"t":{"0":5,"1":5}}', 'only one of them has topic t partition 1'),
    ('{"t":{"0":5},"a":{"0":1}}', '{"t":{"0":5}}', 'only one of them has topic a partition 0'),
]


@pytest.mark.parametrize('start, end, text', CONTRADICTIONS)
@pytest.mark.parametrize('what', ['Offsets', 'OffsetsByTimestamp'])
def test_a_batch_ends_where_it_begins_or_later_and_both_name_the_same_partitions(
    start: str, end: str, text: str, what: str
) -> None:
    said = {'starting' + what: start, 'ending' + what: end}
    with pytest.raises(InvalidOptionError, match='starting%s .*%s' % (what, text)):
        source(BATCH, **said)


def test_offsets_that_brokers_know_best_are_not_compared() -> None:
    source(BATCH, startingOffsets='{"t":{"0":5}}', endingOffsets='{"t":{"0":-1}}')
    source(BATCH, startingOffsets='{"t":{"0":-2}}', endingOffsets='{"t":{"0":0}}')
    source(BATCH, startingOffsets='{"t":{"0":5}}', endingOffsetsByTimestamp='{"x":{"0":1}}')
    source(BATCH, startingOffsets='{"t":{"0":5}}', endingOffsets='{"t":{"0":5}}')


# ---------------------------------------------------------------- groups


def test_a_stream_may_begin_where_a_group_is() -> None:
    found = source(STREAM, **{'kafka.group.id': 'g', 'startingOffsets': 'Committed'})
    assert (found.start, found.committed_group) == (Limit('committed'), 'g')
    found = source(BATCH, **{'kafka.group.id': 'g', 'startingOffsets': 'committed'})
    assert (found.start, found.committed_group) == (Limit('committed'), 'g')


def test_who_commits_begins_where_it_committed() -> None:
    said = {'kafka.group.id': 'g', 'commitOffsets': 'h', 'startingOffsets': 'committed'}
    assert source(STREAM, **said).committed_group == 'h'
    assert source(STREAM, commitOffsets='h', startingOffsets='committed').committed_group == 'h'


@pytest.mark.parametrize(
    'text, group', [('g', 'g'), (' h ', 'h'), ('true', 'g'), ('TRUE', 'g'), ('false', None)]
)
def test_offsets_are_committed_for_the_group_that_is_named(text: str, group: Any) -> None:
    found = source(STREAM, **{'kafka.group.id': 'g', 'commitOffsets': text})
    assert (found.commit_offsets, found.group_id) == (group, 'g')


def test_a_group_is_no_option_of_clients() -> None:
    assert 'group_id' not in source(**{'kafka.group.id': 'g', 'groupIdPrefix': 'p'}).config


# ---------------------------------------------------------------- how

VALUES: List[Any] = [
    ('failOnDataLoss', 'FALSE', {'fail_on_data_loss': False}),
    ('failOnDataLoss', False, {'fail_on_data_loss': False}),
    ('failOnDataLoss', None, {}),
    ('kafkaConsumer.pollTimeoutMs', '512', {'poll_timeout_ms': 512}),
    ('kafkaConsumer.pollTimeoutMs', '1', {'poll_timeout_ms': 1}),
    ('fetchOffset.numRetries', '5', {'retries': 5}),
    ('fetchOffset.numRetries', '1', {'retries': 1}),
    ('fetchOffset.retryIntervalMs', '0', {'retry_interval_ms': 0}),
    ('maxOffsetsPerTrigger', '100', {'max_offsets': 100}),
    ('maxOffsetsPerTrigger', 100, {'max_offsets': 100}),
    ('minOffsetsPerTrigger', '0', {'min_offsets': 0}),
    ('maxOffsetsPerTrigger', '1', {'max_offsets': 1}),
    ('minPartitions', '1', {'min_partitions': 1}),
    ('maxRecordsPerPartition', '1', {'max_records_per_partition': 1}),
    ('minPartitions', '+8', {'min_partitions': 8}),
    ('maxRecordsPerPartition', '9223372036854775807', {'max_records_per_partition': 2**63 - 1}),
    ('includeHeaders', 'true', {'include_headers': True}),
    ('groupIdPrefix', 'p', {'group_id_prefix': 'p'}),
    ('pushdown', 'true', {'pushdown': True}),
    ('lowLatency', 'true', {'low_latency': True}),
    ('maxTriggerDelay', '15m', {'max_delay': 900.0}),
    ('maxTriggerDelay', '2min', {'max_delay': 120.0}),
    ('maxTriggerDelay', ' 10S ', {'max_delay': 10.0}),
    ('maxTriggerDelay', '500', {'max_delay': 0.5}),
    ('maxTriggerDelay', '500ms', {'max_delay': 0.5}),
    ('maxTriggerDelay', '1h', {'max_delay': 3600.0}),
    ('maxTriggerDelay', '1d', {'max_delay': 86400.0}),
    ('maxTriggerDelay', '5000000us', {'max_delay': 5.0}),
]


@pytest.mark.parametrize('name, text, changed', VALUES)
@pytest.mark.parametrize('spelled', [str, str.lower, str.upper])
def test_an_option_is_read_whatever_the_case_of_its_name(
    name: str, text: Any, changed: Dict[str, Any], spelled: Any
) -> None:
    assert source(STREAM, **{spelled(name): text}) == source(STREAM)._replace(**changed)


WRONG: List[Any] = [
    ('startingOffsets', 'earlist', r'startingOffsets must be earliest, latest, committed or JSON'),
    ('startingOffsets', '', 'startingOffsets must be earliest'),
    ('startingOffsets', '{"t":[0]}', 'startingOffsets must be JSON such as'),
    ('startingOffsets', '{"t":{"0":-3}}', '-1 for latest, -2 for earliest'),
    ('startingOffsets', 'committed', 'needs kafka.group.id'),
    ('startingTimestamp', 'now', "startingTimestamp must be milliseconds since 1970.*, not 'now'"),
    ('startingTimestamp', '-1', 'startingTimestamp must be milliseconds'),
    ('startingTimestamp', '1.5', 'startingTimestamp must be milliseconds'),
    ('startingTimestamp', '9223372036854775808', 'startingTimestamp must be milliseconds'),
    ('startingOffsetsByTimestamp', '{"t":{"0":-1}}', 'startingOffsetsByTimestamp must be millis'),
    ('startingOffsetsByTimestamp', '5', 'startingOffsetsByTimestamp must be JSON'),
    ('startingOffsetsByTimestampStrategy', 'earliest', 'Strategy must be error or latest'),
    ('startingOffsetsByTimestampStrategy', '', 'Strategy must be error or latest'),
    ('failOnDataLoss', 'no', "failOnDataLoss must be true or false, not 'no'"),
    ('failOnDataLoss', '', 'failOnDataLoss must be true or false'),
    ('includeHeaders', '1', 'includeHeaders must be true or false'),
    ('pushdown', 'on', 'pushdown must be true or false'),
    ('lowLatency', 'x', 'lowLatency must be true or false'),
    ('minPartitions', '0', 'minPartitions must be a whole number from 1 to 2147483647, not '),
    ('minPartitions', '2147483648', 'minPartitions must be'),
    ('minPartitions', '1e3', 'minPartitions must be'),
    ('minPartitions', ' 8', 'minPartitions must be'),
    ('maxRecordsPerPartition', '0', 'maxRecordsPerPartition must be'),
    ('maxRecordsPerPartition', '9223372036854775808', 'maxRecordsPerPartition must be'),
    ('maxOffsetsPerTrigger', '0', 'maxOffsetsPerTrigger must be a whole number from 1'),
    ('maxOffsetsPerTrigger', 'x', 'maxOffsetsPerTrigger must be'),
    ('minOffsetsPerTrigger', '-1', 'minOffsetsPerTrigger must be'),
    ('maxTriggerDelay', '15 m', "maxTriggerDelay must be a time such as .*, not '15 m'"),
    ('maxTriggerDelay', '1.5m', 'maxTriggerDelay must be'),
    ('maxTriggerDelay', '-5s', 'maxTriggerDelay must be'),
    ('maxTriggerDelay', '', 'maxTriggerDelay must be'),
    ('kafkaConsumer.pollTimeoutMs', '0', 'kafkaConsumer.pollTimeoutMs must be'),
    ('fetchOffset.numRetries', '0', 'fetchOffset.numRetries must be'),
    ('fetchOffset.retryIntervalMs', '-1', 'fetchOffset.retryIntervalMs must be'),
    ('commitOffsets', ' ', 'commitOffsets must be a group, or true'),
    ('commitOffsets', 'true', 'commitOffsets=true needs kafka.group.id'),
    ('kafka.group.id', ' ', 'kafka.group.id must be text that is not empty'),
    ('kafka.auto.offset.reset', 'none', 'kafka.auto.offset.reset is not supported'),
    (
        'maxOffsetPerTrigger',
        '5',
        'unknown option maxoffsetpertrigger: did you mean maxOffsetsPerTrig',
    ),
    ('starting_offsets', 'x', 'did you mean startingOffsets'),
    ('bootstrap.servers', 'h:1', 'did you mean kafka.bootstrap.servers'),
    ('group.id', 'g', 'did you mean kafka.group.id'),
]


@pytest.mark.parametrize('name, text, refusal', WRONG)
def test_a_wrong_option_of_a_source_is_refused_by_name(name: str, text: str, refusal: str) -> None:
    with pytest.raises(KafkaConfigurationError, match=refusal) as caught:
        source(STREAM, **{name: text})
    assert isinstance(caught.value, ValueError)


WRONG_IN_BATCH: List[Any] = [
    ('startingOffsets', 'latest', 'startingOffsets must be earliest, committed or JSON'),
    ('endingOffsets', 'earliest', 'endingOffsets must be latest or JSON'),
    ('endingOffsets', '{"t":{"0":-2}}', 'endingOffsets of topic t partition 0 must not be -2'),
    ('startingOffsets', '{"t":{"0":-1}}', 'startingOffsets of topic t partition 0 must not be -1'),
    ('endingOffsets', 'committed', 'endingOffsets must be latest'),
    ('endingTimestamp', 'x', 'endingTimestamp must be milliseconds'),
    ('endingOffsetsByTimestamp', 'x', 'endingOffsetsByTimestamp must be JSON'),
    ('maxTriggerDelay', 'x', 'maxTriggerDelay must be'),
]


@pytest.mark.parametrize('name, text, refusal', WRONG_IN_BATCH)
def test_a_wrong_option_of_a_batch_is_refused_by_name(name: str, text: str, refusal: str) -> None:
    with pytest.raises(InvalidOptionError, match=refusal):
        source(BATCH, **{name: text})


@pytest.mark.parametrize('is_streaming', [STREAM, BATCH])
def test_the_least_is_not_more_than_the_most(is_streaming: bool) -> None:
    source(is_streaming, minOffsetsPerTrigger='5', maxOffsetsPerTrigger='5')
    with pytest.raises(InvalidOptionError, match='minOffsetsPerTrigger must not be more.* 6 > 5'):
        source(is_streaming, minOffsetsPerTrigger='6', maxOffsetsPerTrigger='5')


def test_a_batch_passes_over_triggers_with_a_warning(caplog: Any) -> None:
    said = {'maxOffsetsPerTrigger': '5', 'minOffsetsPerTrigger': '1', 'maxTriggerDelay': '1m'}
    with caplog.at_level(logging.WARNING, 'kafka.spark'):
        assert source(BATCH, **said) == source(BATCH)
    assert [each.split()[1] for each in caplog.messages] == list(said)
    caplog.clear()
    source(BATCH)
    source(STREAM, **said)
    assert not caplog.messages


OF_SPARK = [
    'path', 'mode', 'checkpointLocation', 'queryName', 'mergeSchema', 'maxFilesPerTrigger',
    'asyncProgressTrackingEnabled', 'truncate', 'numRows', 'compression', '_mockSystemTime',
]  # fmt: skip


@pytest.mark.parametrize('name', [*OF_SPARK, 'topic', 'exactlyOnce', 'transactionalIdPrefix'])
def test_a_source_passes_over_options_that_are_of_others(name: str) -> None:
    assert source(STREAM, **{name: 'x'}) == source(STREAM)


# ---------------------------------------------------------------- sinks

WRITTEN: List[Any] = [
    ({'topic': ' t '}, {'topic': 't'}),
    ({'includeHeaders': 'true'}, {'include_headers': True}),
    ({'exactlyOnce': 'true'}, {'exactly_once': True}),
    (
        {'exactlyonce': True, 'transactionalIdPrefix': 'p'},
        {'exactly_once': True, 'transactional_id_prefix': 'p'},
    ),
    ({'kafka.acks': '1'}, {'config': {**OF_SINKS, 'acks': 1}}),
    ({'subscribe': 't', 'startingOffsets': 'nonsense', 'checkpointLocation': '/c'}, {}),
]


@pytest.mark.parametrize('options, changed', WRITTEN)
def test_an_option_of_a_sink_is_read(options: Dict[str, str], changed: Dict[str, Any]) -> None:
    assert sink(**options) == sink()._replace(**changed)


WRONG_SINKS: List[Any] = [
    ({'topic': ' '}, 'topic: topic'),
    ({'topic': 'a b'}, "topic: topic 'a b'"),
    ({'topics': 't'}, 'unknown option topics: did you mean topic'),
    ({'includeHeaders': 'x'}, 'includeHeaders must be true or false'),
    ({'exactlyOnce': 'yes'}, "exactlyOnce must be true or false, not 'yes'"),
    ({'transactionalIdPrefix': 'p'}, 'transactionalIdPrefix needs exactlyOnce'),
    ({'exactlyOnce': 'true', 'transactionalIdPrefix': ''}, 'transactionalIdPrefix must be text'),
    ({'exactlyOnce': 'true', 'kafka.acks': '1'}, "exactlyOnce needs .* kafka.acks is 'all', not 1"),
    ({'kafka.transactional.id': 'x'}, 'use exactlyOnce'),
    ({'acks.': '1', 'linger.ms': '1'}, 'did you mean kafka.linger.ms'),
]


@pytest.mark.parametrize('options, refusal', WRONG_SINKS)
def test_a_wrong_option_of_a_sink_is_refused_by_name(options: Dict[str, str], refusal: str) -> None:
    with pytest.raises(InvalidOptionError, match=refusal):
        sink(**options)


# ---------------------------------------------------------------- all

LOGIN = {
    'kafka.security.protocol': 'SASL_SSL',
    'kafka.sasl.jaas.config': 'x.PlainLoginModule required username="u" password="canary";',
    'kafka.ssl.key.password': 'canary',
}


def test_options_show_no_secret_and_go_to_other_processes_whole() -> None:
    for found in (source(**LOGIN, startingOffsets=OFFSETS), sink(**LOGIN)):
        assert 'canary' not in repr(found)
        copy = pickle.loads(pickle.dumps(found))
        assert copy == found and 'canary' not in repr(copy)
        assert copy.config['sasl_plain_password'] == 'canary'


def test_a_pattern_goes_to_other_processes() -> None:
    found = SourceOptions.of({**SERVERS, 'subscribePattern': '^a'}, STREAM)
    assert pickle.loads(pickle.dumps(found)) == found


NAMES = [
    'assign', 'subscribe', 'subscribePattern', 'startingOffsets', 'endingOffsets', 'commitOffsets',
    'startingTimestamp', 'startingOffsetsByTimestamp', 'maxTriggerDelay', 'minPartitions',
    'kafka.group.id', 'kafka.acks', 'kafka.sasl.jaas.config', 'topic', 'x',
]  # fmt: skip
TEXTS = ['true', 'a,b', '{"t":[0]}', '{"t":{"0":1}}', 'latest', 'earliest', 'committed', '5', '']


@given(
    some.dictionaries(some.sampled_from(NAMES), some.sampled_from(TEXTS) | some.text(), max_size=4)
)
def test_whatever_is_given_it_is_read_or_refused_never_another_error(said: Any) -> None:
    for is_streaming in (STREAM, BATCH):
        for read in (SourceOptions.of, SinkOptions.of):
            try:
                read({**SERVERS, **said}, is_streaming)
            except InvalidOptionError:
                pass


# ---------------------------------------------------------------- names that nobody knows


def test_a_name_that_nobody_knows_is_told_once(caplog: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(options_module, '_told', [])
    for _ in range(3):
        source(failOnLoss='false', checkpointLocation='/c', path='/p', topic='t')
        sink(failOnLoss='false', asyncProgressTrackingEnabled='true', subscribe='t')
    (told,) = [record.getMessage() for record in caplog.records]
    assert told.startswith('option failonloss has no effect: the options are assign, subscribe, ')


def test_few_such_names_are_remembered(monkeypatch: Any) -> None:
    told: List[str] = []
    monkeypatch.setattr(options_module, '_told', told)
    for number in range(40):
        source(**{'unheard-of-%d' % number: 'x'})
    assert told == ['unheard-of-%d' % number for number in range(24, 40)]


# ---------------------------------------------------------------- before it is said which it is


@pytest.mark.parametrize(
    'options', [{}, {'startingOffsets': 'latest'}, {'endingTimestamp': '5'}, {'pushdown': 'true'}]
)
def test_what_a_batch_or_a_stream_takes_is_not_refused_beforehand(options: Any) -> None:
    SourceOptions.check({**BASE, **options})


def test_what_neither_takes_is_refused_beforehand_and_so_told() -> None:
    with pytest.raises(InvalidOptionError, match="minPartitions must be .* not 'x'$"):
        SourceOptions.check({**BASE, 'minPartitions': 'x'})
    both = 'be earliest, committed or .*of a stream: .* be earliest, latest, committed or'
    with pytest.raises(InvalidOptionError, match=both):
        SourceOptions.check({**BASE, 'startingOffsets': 'x'})


@pytest.mark.parametrize('name', ['kafka.default.api.timeout.ms', 'kafka.default_api_timeout_ms'])
def test_how_long_brokers_may_be_away_has_the_name_that_java_has(name: str) -> None:
    assert source(**{name: '25000'}).api_timeout_ms == 25000
    with pytest.raises(
        InvalidOptionError, match=r'default\.api\.timeout\.ms must be millisec.*soon'
    ):
        source(**{name: 'soon'})
