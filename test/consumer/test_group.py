"""kafka.consumer.group: which era a call of KafkaConsumer means, and what each has.

What the modern one does is told by the tests of its parts; here its engine is a stand-in.
"""

from __future__ import annotations

import copy
import inspect
import logging
import pickle
import threading
from types import SimpleNamespace

import pytest

import kafka
import kafka.consumer.kafka
from kafka.consumer import group
from kafka.consumer.group import ENVIRONMENT_VARIABLE, KafkaConsumer, dialect_of
from kafka.consumer.subscription_state import SubscriptionState
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.errors import (
    ConsumerTimeout,
    IllegalStateError,
    KafkaConfigurationError,
    KafkaUnavailableError,
    NoBrokersAvailable,
    UnknownTopicOrPartitionError,
)
from kafka.structs import TopicPartition
from test.consumer.helpers_09 import SERVERS, message, places


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    return monkeypatch


class StandIn:
    """An engine that reaches nobody. Attributes: made, closed: all that were in this test."""

    made, closed = [], []  # those of a class of its own for each test: see engines()

    def __init__(self, config, make, loop):
        self.lock = threading.Lock()
        self.subscription = SubscriptionState(config['auto_offset_reset'])
        self.loop = SimpleNamespace(call_threadsafe=lambda *call: None, time=lambda: 0.0)
        self.following = SimpleNamespace(subscribed=None)
        self.pool = SimpleNamespace(cluster=None)
        self.commits = self.member = self.figures = None
        self.made.append(self)

    def begin(self, limit=None):
        if limit is not None:
            raise NoBrokersAvailable('nobody')

    def nudge(self):
        pass

    def close(self, seconds):
        self.closed.append(self)

    def retire(self):
        """Do nothing: nobody uses it any more."""


@pytest.fixture(autouse=True)
def engines(monkeypatch):
    """Return the class of this test's engines; those of others may be collected meanwhile."""
    own = type('StandIn', (StandIn,), {'made': [], 'closed': []})
    monkeypatch.setattr(group, 'Engine', own)
    return own


def undecided(**configs):
    return KafkaConsumer('topic', bootstrap_servers=SERVERS, **configs)


# ---------------------------------------------------------------- the name


def test_the_class_is_the_same_everywhere():
    assert kafka.KafkaConsumer is kafka.consumer.KafkaConsumer is KafkaConsumer
    assert kafka.consumer.kafka.KafkaConsumer is KafkaConsumer
    assert (KafkaConsumer.__name__, KafkaConsumer.__module__) == (
        'KafkaConsumer',
        'kafka.consumer.group',
    )
    assert 'KafkaConsumer' in kafka.__all__
    assert 'KafkaConsumer' in kafka.consumer.__all__


def test_the_defaults_of_the_class_are_those_of_both_eras():
    """Where both have an option, those of 1.x and later: a program of 0.9.5 says what it is."""
    old = kafka.consumer.kafka.DEFAULT_CONSUMER_CONFIG
    defaults = KafkaConsumer.DEFAULT_CONFIG
    assert old.keys() <= defaults.keys()
    assert defaults['auto_offset_reset'] == 'latest'
    assert defaults['partition_assignment_strategy'] == (
        RangePartitionAssignor,
        RoundRobinPartitionAssignor,
    )
    assert kafka.consumer.kafka.DEPRECATED_CONFIG_KEYS == {
        'metadata_broker_list': 'bootstrap_servers'
    }


def test_defaults_that_a_class_or_a_program_changes_count_behind_what_is_given(monkeypatch):
    class Ours(KafkaConsumer):
        DEFAULT_CONFIG = dict(KafkaConsumer.DEFAULT_CONFIG, client_id='ours', group_id='g')

    made = Ours('topic', bootstrap_servers=SERVERS, group_id=None, max_poll_records=5)
    assert (made.config['client_id'], made.config['group_id']) == ('ours', None)
    assert pickle.loads(pickle.dumps(undecided(max_poll_records=5))).config['client_id'] != 'ours'
    monkeypatch.setitem(KafkaConsumer.DEFAULT_CONFIG, 'client_id', 'all')
    assert undecided(max_poll_records=5).config['client_id'] == 'all'


def test_defaults_that_a_program_of_0_9_5_changes_count(serve, monkeypatch):
    serve((3, 5))
    monkeypatch.setitem(KafkaConsumer.DEFAULT_CONFIG, 'auto_offset_reset', 'smallest')
    made = KafkaConsumer('topic', bootstrap_servers=SERVERS, auto_commit_enable=False)
    assert made.offsets('fetch') == {(b'topic', 0): 3}


# ---------------------------------------------------------------- what tells the era


@pytest.mark.parametrize(
    'option',
    [
        'metadata_broker_list',
        'auto_commit_enable',
        'auto_commit_interval_messages',
        'deserializer_class',
        'fetch_message_max_bytes',
        'fetch_wait_max_ms',
        'refresh_leader_backoff_ms',
        'socket_timeout_ms',
        'socket_receive_buffer_bytes',
        'num_consumer_fetchers',
        'default_fetcher_backoff_ms',
        'queued_max_message_chunks',
        'rebalance_max_retries',
        'rebalance_backoff_ms',
    ],
)
def test_an_option_that_only_0_9_5_had_tells(option):
    assert dialect_of(['topic'], {option: 1}) == ('0.9.5', 'the option ' + option)
    assert dialect_of(['topic'], {option: 1, 'value_deserializer': 1}).era == '0.9.5'


@pytest.mark.parametrize(
    'topic', [b'topic', ('topic', 0), ('topic', 0, 5), {'topic': 0}, TopicPartition('topic', 0)]
)
def test_a_topic_that_is_no_str_tells(topic):
    assert dialect_of(['other', topic], {}).era == '0.9.5'


@pytest.mark.parametrize(
    'configs',
    [
        {'value_deserializer': bytes.decode},
        {'enable_auto_commit': True},
        {'fetch_max_wait_ms': 100},
        {'max_partition_fetch_bytes': 100},
        {'api_version': (0, 10)},
        {'security_protocol': 'SSL'},
        {'auto_offset_reset': 'earliest'},
        {'auto_offset_reset': 'latest'},
    ],
)
def test_what_only_later_eras_had_tells_against_the_environment(environment, configs):
    environment.setenv(ENVIRONMENT_VARIABLE, '0.9.5')
    dialect = dialect_of(['topic'], configs)
    assert dialect.era == 'modern'
    assert dialect.told_by is not None


@pytest.mark.parametrize(
    'configs',
    [
        {},
        {
            'bootstrap_servers': SERVERS,
            'group_id': 'g',
            'client_id': 'c',
            'consumer_timeout_ms': 1000,
            'auto_commit_interval_ms': 1000,
            'fetch_min_bytes': 1,
        },
        {'auto_offset_reset': 'smallest'},
        {'auto_offset_reset': 'largest'},
    ],
)
def test_where_nothing_tells_the_environment_does_else_it_is_modern(environment, configs):
    assert dialect_of(['topic'], configs) == ('modern', None)
    environment.setenv(ENVIRONMENT_VARIABLE, '')
    assert dialect_of(['topic'], configs) == ('modern', None)
    environment.setenv(ENVIRONMENT_VARIABLE, '0.9.5')
    dialect = dialect_of(['topic'], configs)
    assert (dialect.era, ENVIRONMENT_VARIABLE in dialect.told_by) == ('0.9.5', True)
    environment.setenv(ENVIRONMENT_VARIABLE, 'modern')
    assert dialect_of(['topic'], configs).era == 'modern'


def test_the_option_dialect_decides_above_all(environment):
    environment.setenv(ENVIRONMENT_VARIABLE, '0.9.5')
    assert dialect_of([b'topic'], {'dialect': 'modern', 'auto_commit_enable': 1}).era == 'modern'
    environment.setenv(ENVIRONMENT_VARIABLE, 'modern')
    assert dialect_of(['topic'], {'dialect': '0.9.5', 'enable_auto_commit': 1}).era == '0.9.5'


@pytest.mark.parametrize(
    'name, era', [('0.9.4', '0.9.5'), ('1.2.1', 'modern'), ('2.0.2', 'modern'), ('3.0', 'modern')]
)
def test_a_release_is_a_dialect(name, era):
    assert dialect_of([b'topic'], {'dialect': name}).era == era


@pytest.mark.parametrize('name', ['0.8', '4.0', 'old', 9, [], True])
def test_a_dialect_that_there_is_not_is_named(environment, name):
    with pytest.raises(KafkaConfigurationError, match='dialect'):
        KafkaConsumer('topic', bootstrap_servers=SERVERS, dialect=name)
    environment.setenv(ENVIRONMENT_VARIABLE, str(name))
    with pytest.raises(KafkaConfigurationError, match=ENVIRONMENT_VARIABLE):
        undecided()


# ---------------------------------------------------------------- the constructor


@pytest.mark.parametrize('variable', ['', '0.9.5'])
def test_no_argument_at_all_is_a_configuration_error_if_nobody_is_here(
    environment, install, variable
):
    environment.setenv(ENVIRONMENT_VARIABLE, variable)
    factory = install()
    with pytest.raises(KafkaConfigurationError, match='bootstrap_servers') as caught:
        KafkaConsumer()
    assert isinstance(caught.value, NoBrokersAvailable) == (not variable)
    assert factory.made == []


@pytest.mark.parametrize('configs', [{}, {'auto_commit_enable': False}])
def test_an_option_that_no_era_had_is_a_configuration_error(install, configs):
    factory = install()
    with pytest.raises(KafkaConfigurationError, match='bootstrap_server'):
        KafkaConsumer('topic', bootstrap_server=SERVERS, **configs)
    assert factory.made == []


def test_a_modern_consumer_is_constructed_without_a_broker(install):
    factory = install()
    undecided()
    KafkaConsumer('topic')
    KafkaConsumer('topic', enable_auto_commit=False)
    assert factory.made == []


@pytest.mark.parametrize('told', ['option', 'environment', 'topic', 'dialect'])
def test_a_consumer_of_0_9_5_fixes_its_position_in_the_constructor(environment, serve, told):
    client = serve((0, 5))
    if told == 'environment':
        environment.setenv(ENVIRONMENT_VARIABLE, '0.9.5')
    more = {'option': {'auto_commit_enable': False}, 'dialect': {'dialect': '0.9.5'}}
    made = KafkaConsumer(
        b'topic' if told == 'topic' else 'topic',
        bootstrap_servers=SERVERS,
        **more.get(told, {}),
    )
    client.logs[0] = (0, 6)
    assert places([next(made)]) == [(0, 5)]


def test_dialect_is_no_option_of_configure(serve):
    serve((0, 5))
    made = KafkaConsumer('topic', bootstrap_servers=SERVERS, dialect='0.9.5')
    with pytest.raises(KafkaConfigurationError, match='dialect'):
        made.configure(bootstrap_servers=SERVERS, dialect='0.9.5')


# ---------------------------------------------------------------- the modern consumer


def test_topics_of_the_constructor_are_subscribed_to():
    made = undecided(group_id='g')
    assert made.subscription() == {'topic'}
    assert KafkaConsumer(bootstrap_servers=SERVERS).subscription() is None


def test_a_constructor_that_fails_closes_what_it_opened(engines):
    with pytest.raises(ValueError, match='topic'):
        KafkaConsumer('no topic', bootstrap_servers=SERVERS)
    assert engines.closed == engines.made != []


def test_a_modern_consumer_is_closed_like_any_other(engines):
    made = undecided()
    made.close()
    made.close()
    assert engines.closed == engines.made != []


def test_a_consumer_pickles_as_its_configuration():
    made = undecided(group_id='g', enable_auto_commit=False)
    other = pickle.loads(pickle.dumps(made))
    assert other.subscription() == {'topic'}
    assert other.config['group_id'] == 'g'
    made.close()
    other.close()


def test_an_object_without_its_attributes_can_be_looked_at():
    """Tools that copy or pickle ask a bare object for methods."""
    bare = KafkaConsumer.__new__(KafkaConsumer)
    assert not hasattr(bare, '__deepcopy__')
    assert not hasattr(bare, 'nothing')
    assert copy.copy(bare) is not bare
    assert pickle.loads(pickle.dumps(bare)) is not bare


# ---------------------------------------------------------------- verbs that settle it


SETTLING = [
    ('set_topic_partitions', lambda made: made.set_topic_partitions(('topic', 0, 3)), 3),
    ('fetch_messages', lambda made: made.fetch_messages(), 5),
    ('configure', lambda made: made.configure(bootstrap_servers=SERVERS), 5),
    ('get_partition_offsets', lambda made: made.get_partition_offsets('topic', 0, -1, 1), 5),
    ('offsets', lambda made: made.offsets(), 5),
    ('task_done', lambda made: made.task_done(message(4)), 5),
]


@pytest.mark.parametrize('verb, use, position', SETTLING)
def test_a_verb_that_only_0_9_5_had_settles_it_with_one_line(serve, caplog, verb, use, position):
    client = serve((0, 5))
    made = undecided()
    assert client.calls == []
    use(made)
    (line,) = caplog.records
    assert (line.name, line.levelno) == ('kafka.consumer.kafka', logging.WARNING)
    assert verb + '()' in line.getMessage()
    assert ENVIRONMENT_VARIABLE in line.getMessage()
    client.logs[0] = (0, 6)
    assert places([next(made)]) == [(0, position)]
    use(made)
    assert [line for line in caplog.records if 'makes this a consumer' in line.getMessage()] == [
        line
    ]


def test_offsets_of_a_settled_consumer_are_those_of_its_topics(serve):
    serve((0, 5))
    assert undecided().offsets('fetch') == {(b'topic', 0): 5}


SUCCESSORS = {
    'configure': 'KafkaConsumer()',
    'set_topic_partitions': 'assign()',
    'fetch_messages': 'poll()',
    'get_partition_offsets': 'offsets_for_times()',
}


@pytest.mark.parametrize('verb, use, position', SETTLING[:4])
def test_a_consumer_that_was_said_to_be_modern_is_not_settled(install, verb, use, position):
    factory = install()
    begun = undecided()
    begun._modern.has_polled = True
    for made in (undecided(enable_auto_commit=True), undecided(dialect='modern'), begun):
        with pytest.raises(IllegalStateError, match=verb) as caught:
            use(made)
        assert "dialect='0.9.5'" in str(caught.value)
        assert isinstance(caught.value, NotImplementedError)  # what 1.x raised for all of them
        assert SUCCESSORS[verb] in str(caught.value)
    assert factory.made == []


def test_marks_and_offsets_are_there_in_both_eras():
    made = undecided(dialect='modern')
    made.unsubscribe()
    made.assign([TopicPartition('topic', 0)])
    made.seek(TopicPartition('topic', 0), 7)
    assert made.offsets('fetch') == {('topic', 0): 7}
    assert made.offsets()['task_done'] == {('topic', 0): None}
    assert made.task_done(message(4))
    assert made.offsets('task_done')[b'topic', 0] == 4
    assert not made.task_done(message(4)._replace(partition=9))
    with pytest.raises(ValueError, match='group must be one of'):
        made.offsets('else')


def test_settling_closes_the_modern_consumer(serve, engines):
    serve((0, 5))
    undecided().offsets()
    assert engines.closed == engines.made != []


def test_settling_that_fails_leaves_the_question_open(clock_09, install, serve):
    install(KafkaUnavailableError('down'))
    made = undecided()
    with pytest.raises(KafkaUnavailableError):
        made.offsets()
    assert made.subscription() == {'topic'}
    serve((0, 5))
    made.set_topic_partitions(('topic', 0, 0))
    assert places([next(made)]) == [(0, 0)]


def test_settling_that_fails_leaves_no_connection(serve):
    client = serve((0, 5), topics=())
    with pytest.raises(UnknownTopicOrPartitionError):
        undecided().fetch_messages()
    assert client.closed == 1


OF_BOTH = {'close', 'commit', 'next', 'offsets', 'task_done'}
OF_0_9_5 = {'configure', 'fetch_messages', 'get_partition_offsets', 'set_topic_partitions'}
MODERN = [
    name
    for name in vars(KafkaConsumer)
    if not name.startswith('_') and name != 'DEFAULT_CONFIG' and name not in OF_BOTH | OF_0_9_5
]


@pytest.mark.parametrize('name', MODERN)
def test_modern_methods_raise_in_0_9_5(serve, name):
    serve((0, 5))
    made = KafkaConsumer('topic', bootstrap_servers=SERVERS, auto_commit_enable=False)
    call = getattr(made, name)
    needed = [
        each
        for each in inspect.signature(call).parameters.values()
        if each.kind is each.POSITIONAL_OR_KEYWORD and each.default is each.empty
    ]
    with pytest.raises(KafkaConfigurationError, match=name + ': .* auto_commit_enable') as caught:
        call(*[None for _ in needed])
    assert isinstance(caught.value, AttributeError)  # what it was while the methods were absent


# ---------------------------------------------------------------- repr


def test_repr_lists_topics_and_partitions(serve):
    serve((0, 5), (0, 5))
    made = KafkaConsumer(b'topic', bootstrap_servers=SERVERS)
    assert repr(made) == '<KafkaConsumer 0.9.5 topics=(topic-0|topic-1)>'
    assert repr(undecided()) == '<KafkaConsumer modern topics=(topic)>'


def test_a_subclass_is_itself(serve):
    serve((0, 5))

    class Mine(KafkaConsumer):
        def __init__(self, topic):
            super().__init__(
                topic, bootstrap_servers=SERVERS, consumer_timeout_ms=0, dialect='0.9.5'
            )

    made = Mine('topic')
    assert type(made) is Mine
    assert repr(made).startswith('<Mine ')
    with pytest.raises(ConsumerTimeout):
        next(made)


def test_every_modern_name_is_foreign_to_0_9_5():
    """A name in both lists would make a call mean two things."""
    assert not group._ONLY_MODERN & (group._ONLY_OLD | group.DEFAULT_CONSUMER_CONFIG.keys())
    assert {'enable_auto_commit', 'session_timeout_ms', 'ssl_cafile'} <= group._ONLY_MODERN
