"""The arguments of the KafkaConsumer of 0.9.5: its options, and the forms that name partitions.

Checked here for kafka.consumer.kafka_09, which acts on them.
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
    """Return all options with their values; KafkaConfigurationError for what cannot be one.

    Those of security are the client's business, see security_among().
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
    """Return the options that say how connections are secured, for the client."""
    return {name: value for name, value in configs.items() if name in SECURITY}


def _is_size(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and 0 <= int(value) <= _INT32_MAX


def _as_float(value: Any) -> float:
    """Return a number as float; NaN for what is none, or is too large to count with."""
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


_ALL: Any = object()  # stands for all partitions of a topic


def wanted_partitions(
    arguments: Iterable[Any], ids_of: Callable[[bytes], List[int]]
) -> Dict[TopicAndPartition, Optional[int]]:
    """Return the partitions that the arguments of set_topic_partitions name, and their offsets.

    Arguments: ids_of: gives the partitions that a topic has. A partition that comes twice has the
        last offset given for it.
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
    """Yield what one argument names: (topic, partition, offset), with _ALL or None where open."""
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
        _refuse(argument, 'that is none of the forms there are')


def _refuse(argument: Any, reason: str) -> NoReturn:
    raise KafkaConfigurationError('cannot consume %r: %s' % (argument, reason))
