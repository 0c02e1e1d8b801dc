"""Validation of the arguments of the KafkaConsumer of 0.9.5: its options, and what it consumes.

Called by kafka.consumer.kafka_09, for configure() and set_topic_partitions().
"""

from __future__ import annotations

import logging
import math
import numbers
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NoReturn, Optional, Tuple

from kafka.config.consumer_table import OF_0_9_5
from kafka.config.option import TOWER
from kafka.config.security_table import SECURITY
from kafka.errors import KafkaConfigurationError, UnknownTopicOrPartitionError
from kafka.structs import TopicAndPartition
from kafka.util import name_bytes

log = logging.getLogger('kafka.consumer.kafka')

DEFAULT_CONSUMER_CONFIG: Dict[str, Any] = {
    name: row.default_for(TOWER) for name, row in OF_0_9_5.items()
}

DEPRECATED_CONFIG_KEYS = {old: row.name for row in OF_0_9_5.values() for old in row.old}

_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1


def complete_options(configs: Dict[str, Any], defaults: Mapping[str, Any]) -> Dict[str, Any]:
    """Return all options with their values.

    Options of security are left out: security_among() returns them, and the client checks them.
    Deprecated names are replaced, with a warning in the log.

    Arguments: configs: the options that were given; defaults: {name: value} of all options.
    Raises: KafkaConfigurationError for an unknown option, an invalid value, auto_commit_enable
        without group_id, and a missing bootstrap_servers.
    """
    given = {name: value for name, value in configs.items() if name not in SECURITY}
    for old, new in DEPRECATED_CONFIG_KEYS.items():
        if old in given:
            value = given.pop(old)
            ignored = ', ignored' if new in given else ''
            log.warning('option %s is deprecated%s: use %s', old, ignored, new)
            given.setdefault(new, value)
    unknown = sorted(set(given) - set(defaults))
    if unknown:
        raise KafkaConfigurationError(
            'KafkaConsumer of 0.9.5 has no option %s' % ', '.join(unknown)
        )
    options = dict(defaults, **given)
    for name, check in _CHECKS.items():
        if not check(options[name]):
            raise KafkaConfigurationError('%s cannot be %r' % (name, options[name]))
    if options['auto_commit_enable'] and not options['group_id']:
        raise KafkaConfigurationError('auto_commit_enable needs the option group_id')
    if not options['bootstrap_servers']:
        raise KafkaConfigurationError('the option bootstrap_servers is missing')
    return options


def security_among(configs: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the security options (TLS and SASL), for the client."""
    return {name: value for name, value in configs.items() if name in SECURITY}


def _is_size(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and 0 <= int(value) <= _INT32_MAX


def _as_float(value: Any) -> float:
    """Return a number as float; NaN if the value is not a number or is too large for a float."""
    try:
        return float(value) if isinstance(value, numbers.Real) else math.nan
    except OverflowError:
        return math.nan


def _is_time(value: Any) -> bool:
    return 0 <= _as_float(value) <= _INT32_MAX


def _is_number_or_none(value: Any) -> bool:
    return value is None or not math.isnan(_as_float(value))


_CHECKS: Dict[str, Callable[[Any], bool]] = {
    'socket_timeout_ms': lambda value: _is_time(value) and value > 0,
    'fetch_message_max_bytes': lambda value: _is_size(value) and value > 0,
    'fetch_min_bytes': _is_size,
    'fetch_wait_max_ms': _is_time,
    'refresh_leader_backoff_ms': _is_time,
    'deserializer_class': callable,
    'auto_commit_interval_ms': _is_number_or_none,
    'auto_commit_interval_messages': _is_number_or_none,
    'consumer_timeout_ms': _is_number_or_none,
}


_ALL: Any = object()  # in place of a partition: all partitions of the topic


def wanted_partitions(
    arguments: Iterable[Any], ids_of: Callable[[bytes], List[int]]
) -> Dict[TopicAndPartition, Optional[int]]:
    """Return {partition: offset or None} for the arguments of set_topic_partitions().

    A partition that is named several times gets the last offset given for it.

    Arguments: ids_of: returns the ids of a topic's partitions.
    Raises: KafkaConfigurationError for an argument of another form;
        UnknownTopicOrPartitionError for a topic or partition that does not exist.
    """
    found: Dict[TopicAndPartition, Optional[int]] = {}
    for argument in arguments:
        for topic, partition, offset in _triples(argument):
            if not isinstance(topic, (str, bytes)):
                _refuse(argument, 'a topic is str or bytes')
            name = name_bytes(topic, 'topic')
            ids = ids_of(name)
            if partition is not _ALL and not isinstance(partition, numbers.Integral):
                _refuse(argument, 'a partition is an int')
            if not (offset is None or isinstance(offset, numbers.Integral)):
                _refuse(argument, 'an offset is an int')
            if offset is not None and abs(int(offset)) > _INT64_MAX:
                _refuse(argument, 'an offset has 64 bits')
            if not ids or (partition is not _ALL and partition not in ids):
                what = 'topic %r' % (name,)
                if ids:
                    what += ' partition %r' % (partition,)
                raise UnknownTopicOrPartitionError('%s does not exist' % what)
            for number in ids if partition is _ALL else [int(partition)]:
                key = TopicAndPartition(name, number)
                found[key] = found.get(key) if offset is None else int(offset)
    return found


def _triples(argument: Any) -> Iterator[Tuple[Any, Any, Any]]:
    """Yield (topic, partition, offset) for one argument.

    The partition is _ALL, and the offset None, if the argument does not name one.
    """
    if isinstance(argument, (str, bytes)):
        yield argument, _ALL, None
    elif isinstance(argument, tuple) and len(argument) in (2, 3):
        yield argument if len(argument) == 3 else (*argument, None)
    elif isinstance(argument, dict):
        for key, value in argument.items():
            if isinstance(key, tuple):
                if len(key) != 2:
                    _refuse(argument, 'a key is a topic or (topic, partition)')
                yield (*key, value)
            elif isinstance(value, (list, tuple)):
                for partition in value:
                    yield key, partition, None
            else:
                yield key, value, None
    else:
        _refuse(argument, 'expected a topic, or a topic with partitions and offsets')


def _refuse(argument: Any, reason: str) -> NoReturn:
    raise KafkaConfigurationError('cannot consume %r: %s' % (argument, reason))
