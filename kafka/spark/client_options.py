"""The options with the prefix ``kafka.``: converted from Java's names and texts to our options.

It defines which of Java's options a reader and a writer accept and how their texts are converted.
Options without a meaning here are ignored if they cannot change the result, so that an unchanged
job runs; all others are refused. Options of this package that Java lacks are accepted by their
names with dots or underscores (``kafka.proxy.url``). Options of security are converted in
security_options.py; kinds and contradictions are checked in kafka/config.
"""

from __future__ import annotations

import difflib
import re
from contextlib import contextmanager
from typing import AbstractSet, Any, Dict, Iterator, List, Mapping, Optional, Tuple

from kafka import config
from kafka.config.kinds import FLAG, Unfit
from kafka.config.secrets import shown
from kafka.errors import InvalidOptionError, KafkaConfigurationError, KafkaError
from kafka.net.security import SecuritySettings
from kafka.spark.security_options import is_of_security, read_security

__all__ = [
    'API_TIMEOUT_MS',
    'api_timeout_ms',
    'consumer_config',
    'in_java',
    'is_kafka_name',
    'java_name',
    'java_names',
    'producer_config',
]

PREFIX = 'kafka.'
#: How long Java's consumers and admin clients retry, unless default.api.timeout.ms is given.
API_TIMEOUT_MS = 60000
_API_TIMEOUT = 'default.api.timeout.ms'
_CLASSES = 'Java classes are not supported'
_AS_THEY_ARE = 'values are used as they are given'

#: What a source refuses, and the alternative.
_NOT_OF_SOURCES = {
    'auto.offset.reset': 'use startingOffsets, which applies to new queries only',
    'key.deserializer': 'keys are bytes: convert them with functions of DataFrames',
    'value.deserializer': 'values are bytes: convert them with functions of DataFrames',
    'key.serializer': 'a reader serializes nothing',
    'value.serializer': 'a reader serializes nothing',
    'enable.auto.commit': 'Spark stores the offsets; commitOffsets also commits them for a group',
    'interceptor.classes': 'records of a source cannot be intercepted',
    'interceptors': 'records of a source cannot be intercepted',
    'config.providers': _AS_THEY_ARE,
}
#: What a sink refuses.
_NOT_OF_SINKS = {
    'key.serializer': 'keys are text or bytes: convert them with functions of DataFrames before',
    'value.serializer': 'values are text or bytes: convert them with functions of DataFrames'
    ' before',
    'interceptor.classes': _CLASSES,
    'interceptors': 'use functions of DataFrames before',
    'config.providers': _AS_THEY_ARE,
    'transactional.id': 'use exactlyOnce, and transactionalIdPrefix to choose the name',
}
#: Options of consumers without a meaning if there is no group, or because Spark chooses offsets.
_OF_GROUPS = frozenset((
    'group.instance.id', 'group.protocol', 'group.remote.assignor', 'session.timeout.ms',
    'heartbeat.interval.ms', 'max.poll.interval.ms', 'max.poll.records', 'auto.commit.interval.ms',
    'exclude.internal.topics', 'allow.auto.create.topics',
))  # fmt: skip
#: Options that only Java's clients have, and that do not change the result.
_OF_JAVA = frozenset((
    'auto.include.jmx.reporter', 'enable.metrics.push',
    'internal.leave.group.on.close', 'internal.throw.on.fetch.stable.offset.unsupported',
    'metric.reporters', 'metrics.recording.level', 'partition.assignment.strategy',
    'share.acknowledgement.mode',
))  # fmt: skip
#: Options that accept one of their values only: the value, and the reason.
_FIXED = {
    'partitioner.ignore.keys': ('false', 'the column partition chooses the partition of a row'),
    'transaction.two.phase.commit.enable': ('false', 'transactions follow the batches of Spark'),
}
#: Java's default partitioner, under all of its names; any other is a Java class.
_PARTITIONERS = ('', 'org.apache.kafka.clients.producer.internals.DefaultPartitioner')
_LEVELS = {codec: 'compression.%s.level' % codec for codec in ('gzip', 'lz4', 'zstd')}
#: Options whose values are not text, or that neither a BoundedReader nor a sink uses.
_NO_TEXT = frozenset((
    'consumer_timeout_ms', 'default_offset_commit_callback', 'metric_group_prefix',
    'socket_options', 'fetch_max_buffered_bytes', 'raise_on_too_large',
))  # fmt: skip
#: Options of connections that are not handled in security_options.py.
_NOT_OF_LOGINS = ('security_protocol', 'proxy_url', 'socks5_proxy')
_NUMBER = re.compile(r'[+-]?[0-9]{1,19}\Z')
_LARGEST = 2**63 - 1
_LARGEST_INT = 2**31 - 1
_PAUSE_MS = 60000

Rows = Dict[str, config.Option]


def _rows_of(face: config.Face) -> Rows:
    """Return rows by the names that they have here: Java's, and those of this package with dots."""
    found: Rows = {}
    for row in config.options_of(face).values():
        is_read_elsewhere = row.name in config.SECURITY and row.name not in _NOT_OF_LOGINS
        if row.is_ignored or row.name in _NO_TEXT or is_read_elsewhere:
            continue
        found[row.name.replace('_', '.')] = row
        if row.java_name is not None:
            found[row.java_name] = row
    return found


_CONSUMER, _PRODUCER = _rows_of(config.CONSUMER), _rows_of(config.PRODUCER)


def java_name(name: str) -> str:
    """Return the name of an option here, without the prefix."""
    row = config.OPTIONS[name]
    if row.java_name is not None:
        return row.java_name
    return row.dotted[0] if row.dotted else name.replace('_', '.')


def is_kafka_name(name: str) -> bool:
    """Return True if a name without a prefix is an option of Kafka: the prefix was forgotten."""
    return '.' in name and (name in _CONSUMER or name in _PRODUCER or is_of_security(name))


def consumer_config(given: Mapping[str, str]) -> Dict[str, Any]:
    """Return options of BoundedReader and KafkaConsumer, without those of a group.

    Arguments: given: texts by Java's names, without ``kafka.``, in lower case.
    Raises InvalidOptionError, which shows no secret.
    """
    named = _named(given, _NOT_OF_SOURCES)
    found = _read(named, _CONSUMER, {*_PRODUCER, *_FIXED, *_LEVELS.values()})
    found.pop('group_id', None)
    # Reading must not create topics, and the offsets are stored by Spark.
    found.update(allow_auto_create_topics=False, enable_auto_commit=False)
    _wait_for_brokers(found, api_timeout_ms(given))
    _settle_idle(found)
    _check(config.CONSUMER, found)
    return config.hidden(found)


def producer_config(given: Mapping[str, str], is_transactional: bool = False) -> Dict[str, Any]:
    """Return options of KafkaProducer.

    Arguments: given: as for consumer_config(); is_transactional: whether the producers will have a
    transactional_id, which is not among the options. Raises InvalidOptionError.
    """
    rest = _named(given, _NOT_OF_SINKS)
    _check_partitioner(rest.pop('partitioner.class', ''))
    _check_fixed(rest)
    level = _level_of(rest)
    found = _read(rest, _PRODUCER, {*_CONSUMER, *_NOT_OF_SOURCES, *_FIXED})
    if level is not None:
        found['compression_level'] = level
    _wait_for_brokers(found, found.get('max_block_ms', config.OPTIONS['max_block_ms'].default))
    checked = dict(found, transactional_id='x') if is_transactional else found
    _check(config.PRODUCER, checked)
    return config.hidden(found)


def api_timeout_ms(given: Mapping[str, str]) -> int:
    """Return default.api.timeout.ms. Arguments and errors: as consumer_config()."""
    for name, text in given.items():
        if name.replace('_', '.') == _API_TIMEOUT:
            if not _NUMBER.match(text) or not 0 <= int(text) <= _LARGEST_INT:
                raise InvalidOptionError(
                    '%s%s must be milliseconds from 0 to %d, not %s'
                    % (PREFIX, _API_TIMEOUT, _LARGEST_INT, shown(text))
                )
            return int(text)
    return API_TIMEOUT_MS


def _wait_for_brokers(found: Dict[str, Any], limit_ms: int) -> None:
    """Wait for an unreachable cluster as long as Java's clients do."""
    if 'bootstrap_timeout_ms' not in found and 'api_version_auto_timeout_ms' not in found:
        found['bootstrap_timeout_ms'] = limit_ms


def _settle_idle(found: Dict[str, Any]) -> None:
    """Keep connections open for longer than a response may take, which Java does not require."""
    default = config.OPTIONS['connections_max_idle_ms'].default
    idle, answer = found.get('connections_max_idle_ms', default), found.get('request_timeout_ms', 0)
    if 0 <= idle <= answer:
        found['connections_max_idle_ms'] = answer + _PAUSE_MS


def _named(given: Mapping[str, str], refused: Mapping[str, str]) -> Dict[str, str]:
    """Return texts by names with dots; the given names may have underscores."""
    named = {name.replace('_', '.'): text for name, text in given.items()}
    if 'bootstrap.servers' not in named:
        raise InvalidOptionError('kafka.bootstrap.servers is missing: host:port of some brokers')
    for name, instead in refused.items():
        if name in named:
            raise InvalidOptionError('%s%s is not supported: %s' % (PREFIX, name, instead))
    return named


def _check_partitioner(name: str) -> None:
    if name not in _PARTITIONERS:
        raise InvalidOptionError(
            '%spartitioner.class must be left out, not %s: %s; the column partition can choose the'
            ' partition of a row' % (PREFIX, shown(name), _CLASSES)
        )


def _level_of(rest: Dict[str, str]) -> Optional[int]:
    """Remove the levels of all codecs, and return the level of the codec that is used."""
    codec = rest.get('compression.type', '')
    levels = {each: rest.pop(name) for each, name in _LEVELS.items() if name in rest}
    row = _PRODUCER['compression.level']
    read = {each: read_text(row, _LEVELS[each], text) for each, text in levels.items()}
    return read.get(codec)


def _read(given: Mapping[str, str], rows: Rows, others: AbstractSet[str]) -> Dict[str, Any]:
    """Return the given options by the names of this package.

    Arguments: rows: of this side; others: names of the other side, which are ignored here: one
    dict of options may serve a reader and a writer.
    """
    found: Dict[str, Any] = {}
    security = {name: text for name, text in given.items() if is_of_security(name)}
    for name, text in given.items():
        if name in security or name in _OF_JAVA or name == _API_TIMEOUT:
            continue
        if name in rows:
            value = read_text(rows[name], name, text)
            if name not in _OF_GROUPS:
                found[rows[name].name] = value
        elif name not in others:
            raise InvalidOptionError(_unknown(name, rows))
    found.update(read_security(security))
    return found


def _check_fixed(given: Mapping[str, str]) -> None:
    for name, (only, why) in _FIXED.items():
        if given.get(name, only).lower() != only:
            raise InvalidOptionError(
                '%s%s must be %s, not %s: %s' % (PREFIX, name, only, shown(given[name]), why)
            )


def _unknown(name: str, rows: Rows) -> str:
    dotted = {each: row for row in config.OPTIONS.values() for each in row.dotted}
    if name in dotted:
        hint = 'write %s%s' % (PREFIX, java_name(dotted[name].name))
    else:
        near = difflib.get_close_matches(name, [*rows, *_SECURED], 1, 0.7)
        hint = (
            'did you mean %s%s?' % (PREFIX, near[0])
            if near
            else 'no Kafka client has such an option'
        )
    return 'unknown option %s%s: %s' % (PREFIX, name[:60], hint)


_SECURED = [java_name(name) for name in config.SECURITY] + ['sasl.jaas.config']


def read_text(row: config.Option, name: str, text: str) -> Any:
    """Return the value of a text: its first reading that is valid for the row's kind.

    Arguments: name: of the option, without the prefix. Raises InvalidOptionError.
    """
    if text == '-1' and row.name in ('receive_buffer_bytes', 'send_buffer_bytes'):
        return None  # the default of the system
    hint = ''
    for reading in _readings(row, text):
        try:
            return row.kind.convert(reading)
        except Unfit as error:
            hint = str(error)
    allowed = 'true or false' if row.kind is FLAG else row.kind.text.replace(', or None', '')
    raise InvalidOptionError(
        '%s%s must be %s, not %s%s'
        % (PREFIX, name, allowed, shown(text), ': ' + hint if hint else '')
    )


def _readings(row: config.Option, text: str) -> List[Any]:
    if row.kind is FLAG:
        return [{'true': True, 'false': False}.get(text.lower(), text)]
    if _NUMBER.match(text) and abs(int(text)) <= _LARGEST:
        return [text, int(text)]
    return [text]


#: The last options that were checked successfully. A query converts its options for each
#: micro-batch; because of this list, warnings about them, such as a password sent in clear text,
#: are logged once.
_passed: List[Tuple[config.Face, Dict[str, Any]]] = []
_PASSED_AT_MOST = 16


def _check(face: config.Face, found: Dict[str, Any]) -> None:
    """Raise for options that contradict each other or are incomplete, by their names here."""
    if (face, found) in _passed:
        return
    try:
        SecuritySettings.from_options(config.resolve(face, found))
    except KafkaConfigurationError as error:
        text = in_java(str(error.args[0]))
        # The program did not give it: exactlyOnce requires it.
        text = text.replace(PREFIX + 'transactional.id', 'exactlyOnce')
        raise InvalidOptionError(text) from None
    del _passed[: 1 - _PASSED_AT_MOST]
    _passed.append((face, config.hidden(found)))


# Names of one word are ordinary words in messages, except for these.
_IN_TEXTS = ['acks', 'retries', *(name for name in config.OPTIONS if '_' in name)]
_OURS = re.compile(r'(?<![\w.])(%s)\b' % '|'.join(_IN_TEXTS))
#: The usual option for user and password here, which is unknown to the clients.
_JAAS, _USER = 'kafka.sasl.jaas.config', 'kafka.sasl.username'


def in_java(text: str) -> str:
    """Return a message of a client with the names that options have here."""
    found = _OURS.sub(_in_java, text)
    if _USER in found and _JAAS not in found:
        found += ' (user name and password are usually set by %s)' % _JAAS
    return found


@contextmanager
def java_names() -> Iterator[None]:
    """Rename options in the errors of clients to their names here, in a ``with`` block."""
    try:
        yield
    except KafkaError as error:
        error.args = tuple(in_java(each) if isinstance(each, str) else each for each in error.args)
        raise


def _in_java(found: Any) -> str:
    return PREFIX + java_name(found.group(1))
