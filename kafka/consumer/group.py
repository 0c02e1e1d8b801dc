"""KafkaConsumer, one class for programs of 0.9.5 and of the releases after it.

Owns which of the two a consumer is: what in a call tells, what holds where nothing does, and what
becomes of a verb that the other one has. The verbs of 0.9.5 stand in ``dialect_09``. The era is
read in this file alone.
"""

from __future__ import annotations

import copy
import logging
import os
from typing import Any, Dict, Iterable, Mapping, NamedTuple, Optional

from kafka import config
from kafka.consumer.arguments_09 import DEFAULT_CONSUMER_CONFIG, DEPRECATED_CONFIG_KEYS
from kafka.consumer.dialect_09 import Verbs09
from kafka.errors import IllegalStateError, KafkaConfigurationError
from kafka.structs import KafkaMessage

log = logging.getLogger('kafka.consumer.kafka')

OLD, MODERN = '0.9.5', 'modern'
ENVIRONMENT_VARIABLE = 'KAFKA_LEGACY_DIALECT'

_OPTIONS = config.options_of(config.CONSUMER)
_ONLY_OLD = config.ONLY_0_9
# Options of 1.x to 3.x that 0.9.5 did not have; those of both eras tell nothing.
_ONLY_MODERN = (
    (_OPTIONS.keys() | {old for row in _OPTIONS.values() for old in row.old})
    - DEFAULT_CONSUMER_CONFIG.keys()
    - DEPRECATED_CONFIG_KEYS.keys()
    - {'dialect'}
)
# What such programs call and read.
_MODERN_VERBS = frozenset(
    """
    assign assignment beginning_offsets bootstrap bootstrap_connected commit_async committed
    end_offsets group_metadata highwater metrics offsets_for_times partitions_for_topic pause paused
    poll position resume seek seek_to_beginning seek_to_end subscribe subscription topics
    unsubscribe wakeup
    """.split()
)

_HOW_TO_SAY_SO = "dialect='0.9.5' or the environment variable %s=0.9.5" % ENVIRONMENT_VARIABLE


class _NotOffered(KafkaConfigurationError, AttributeError):
    """An attribute that this consumer has not, because of its era; absent also for hasattr()."""


class ConsumerDialect(NamedTuple):
    """Which era a consumer is of, ``'0.9.5'`` or ``'modern'``, and what said so.

    told_by is None where nothing did: the era is assumed, and a verb of 0.9.5 may still change it.
    """

    era: str
    told_by: Optional[str]


def dialect_of(topics: Iterable[Any], configs: Mapping[str, Any]) -> ConsumerDialect:
    """Tell the era that the arguments of KafkaConsumer mean.

    The option ``dialect`` decides. Without it: an option that only one era had, 0.9.5 if both have
    one; a topic that is no str, which only 0.9.5 took; the words ``'earliest'`` and ``'latest'``,
    which it did not know. Where nothing in the call tells, the environment variable
    ``KAFKA_LEGACY_DIALECT`` does; else it is assumed to be modern.

    Raises: KafkaConfigurationError when the option or the variable names no dialect.
    """
    if configs.get('dialect') is not None:
        return ConsumerDialect(_era(configs['dialect'], 'the option dialect'), 'the option dialect')
    for option in sorted(_ONLY_OLD & configs.keys()):
        return ConsumerDialect(OLD, 'the option ' + option)
    for topic in topics:
        if not isinstance(topic, str):
            return ConsumerDialect(OLD, 'a topic given as %s' % type(topic).__name__)
    for option in sorted(_ONLY_MODERN & configs.keys()):
        return ConsumerDialect(MODERN, 'the option ' + option)
    if configs.get('auto_offset_reset') in ('earliest', 'latest'):
        return ConsumerDialect(MODERN, 'auto_offset_reset=%r' % configs['auto_offset_reset'])
    variable = os.environ.get(ENVIRONMENT_VARIABLE)
    if variable:
        what = 'the environment variable ' + ENVIRONMENT_VARIABLE
        return ConsumerDialect(_era(variable, what), what)
    return ConsumerDialect(MODERN, None)


def _era(name: Any, what: str) -> str:
    release = config.dialect_of(name) if isinstance(name, str) else None
    if release is None and name != MODERN:
        raise KafkaConfigurationError(
            "%s must be '0.9.5' or 'modern', or a release such as '2.0.2', not %r" % (what, name)
        )
    return OLD if release == OLD else MODERN


class KafkaConsumer(Verbs09):
    """Consume topics: ``KafkaConsumer('topic', bootstrap_servers='host:9092')``.

    Two eras gave this name to classes with different guarantees. This one is both; the call tells
    which, as ``dialect_of`` describes. The one of 0.9.5 does ``configure(**configs)`` and then
    ``set_topic_partitions(*topics)``, so after the constructor its positions are numbers. The one
    of 1.x and later, which shares a group's partitions among its members, is not offered yet: it
    can be constructed, and its verbs raise KafkaConfigurationError. Where nothing told the era, a
    verb that only 0.9.5 had settles it, with a warning in the log; positions are those of that
    moment.

    Arguments:
        topics: see set_topic_partitions.
        dialect: ``'0.9.5'``, ``'modern'`` or a later release, where the others do not tell.
        configs: the options, see configure.

    Not safe for use by several threads at once.

    Raises: KafkaConfigurationError for options that no era had, and without any arguments; what
        configure and set_topic_partitions raise, in 0.9.5.
    """

    DEFAULT_CONFIG = copy.deepcopy(DEFAULT_CONSUMER_CONFIG)

    def __init__(self, *topics: Any, **configs: Any) -> None:
        super().__init__()
        self._dialect = dialect_of(topics, configs)
        self._topics = topics
        given = {name: value for name, value in configs.items() if name != 'dialect'}
        self._given: Dict[str, Any] = config.hidden(given)
        if self._dialect.era == OLD:
            self._open()
            return
        if not topics and not configs:
            raise KafkaConfigurationError('the option bootstrap_servers is missing')
        unknown = self._given.keys() - self.DEFAULT_CONFIG.keys() - _ONLY_OLD - _ONLY_MODERN
        if unknown:
            raise KafkaConfigurationError(
                'KafkaConsumer has no option %s' % ', '.join(sorted(unknown))
            )

    def __repr__(self) -> str:
        if self._dialect.era == OLD:
            names = [
                '%s-%d' % (_text(key.topic), key.partition) for key in self._table.partitions()
            ]
        else:
            names = [_text(topic) for topic in self._topics]
        return '<%s %s topics=(%s)>' % (type(self).__name__, self._dialect.era, '|'.join(names))

    def __iter__(self) -> KafkaConsumer:
        return self

    def __next__(self) -> KafkaMessage:
        return self.next()

    def __getattr__(self, name: str) -> Any:
        """Tell what is missing; called for attributes that are not there."""
        if name in _MODERN_VERBS or name == '_client':
            dialect = vars(self).get('_dialect')
            if dialect is not None and dialect.era == OLD:
                raise _NotOffered(
                    '%s: this consumer is one of 0.9.5, by %s' % (name, dialect.told_by)
                )
            raise _NotOffered(_not_offered(name))
        raise AttributeError('%r object has no attribute %r' % (type(self).__name__, name))

    def _open(self) -> None:
        """Do what the constructor of 0.9.5 did; leave no connection open when that fails."""
        try:
            self.configure(**self._given)
            self.set_topic_partitions(*self._topics)
        except BaseException:
            Verbs09.close(self)
            raise

    def _settle(self, verb: str) -> None:
        """Begin a verb that only 0.9.5 had: it settles what nothing has told before.

        Raises: IllegalStateError on a consumer that was said to be of another era; what opening one
            of 0.9.5 raises, in which case nothing is settled.
        """
        dialect = self._dialect
        if dialect.era == OLD:
            return
        if dialect.told_by is not None:
            raise IllegalStateError(
                '%s() is of 0.9.5, and %s makes this a modern consumer; pass %s'
                % (verb, dialect.told_by, _HOW_TO_SAY_SO)
            )
        log.warning('%s() makes this a consumer of 0.9.5; say so by %s', verb, _HOW_TO_SAY_SO)
        self._dialect = ConsumerDialect(OLD, verb + '()')
        try:
            self._open()
        except BaseException:
            self._dialect = dialect
            raise

    def _require(self, verb: str) -> None:
        """Begin a verb of several eras; KafkaConfigurationError where 0.9.5's is not meant."""
        if self._dialect.era != OLD:
            raise KafkaConfigurationError(_not_offered(verb))


def _not_offered(verb: str) -> str:
    return (
        '%s: the consumer of 1.x and later, which joins a group, is not offered yet. A program'
        ' written for 0.9.5 says so by %s' % (verb, _HOW_TO_SAY_SO)
    )


def _text(topic: Any) -> str:
    return topic.decode('utf-8', 'replace') if isinstance(topic, bytes) else str(topic)
