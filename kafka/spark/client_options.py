"""The options that begin with ``kafka.``: from the names and texts of Java to our options.

Owns which of Java's names there are for a reader and for a writer, what is made of their texts, and
which have no meaning here: those that cannot change the result are taken and passed over, so that
an unchanged job runs; all others are refused. Our own options that Java lacks are taken by their
names with dots or underscores (``kafka.proxy.url``). Does not own: rows, kinds and contradictions
of options (kafka/config), what of it is about security (security_options.py).
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
#: For how long Java's consumers and admin clients try again unless default.api.timeout.ms is given.
API_TIMEOUT_MS = 60000
_API_TIMEOUT = 'default.api.timeout.ms'
_CLASSES = 'classes of Java cannot be used here'
_AS_THEY_ARE = 'values are taken as they are given'

#: What a source refuses, and what does what may have been wanted.
_NOT_OF_SOURCES = {
    'auto.offset.reset': 'say startingOffsets, which counts for a new query only',
    'key.deserializer': 'keys are bytes: use functions of DataFrames on them',
    'value.deserializer': 'values are bytes: use functions of DataFrames on them',
    'key.serializer': 'nothing is serialized by a reader',
    'value.serializer': 'nothing is serialized by a reader',
    'enable.auto.commit': 'Spark keeps the offsets; commitOffsets tells a group of them',
    'interceptor.classes': 'nobody may change what is read',
    'interceptors': 'nobody may change what is read',
    'config.providers': _AS_THEY_ARE,
}
#: What a sink refuses.
_NOT_OF_SINKS = {
    'key.serializer': 'keys are text or bytes: use functions of DataFrames before',
    'value.serializer': 'values are text or bytes: use functions of DataFrames before',
    'interceptor.classes': _CLASSES,
    'interceptors': 'use functions of DataFrames before',
    'config.providers': _AS_THEY_ARE,
    'transactional.id': 'say exactlyOnce, and transactionalIdPrefix if the name matters',
}
#: Options of consumers that mean nothing without a group, or when Spark says what is read.
_OF_GROUPS = frozenset((
    'group.instance.id', 'group.protocol', 'group.remote.assignor', 'session.timeout.ms',
    'heartbeat.interval.ms', 'max.poll.interval.ms', 'max.poll.records', 'auto.commit.interval.ms',
    'exclude.internal.topics', 'allow.auto.create.topics',
))  # fmt: skip
#: What Java's clients have and ours do not, and what changes no result.
_OF_JAVA = frozenset((
    'auto.include.jmx.reporter', 'enable.metrics.push',
    'internal.leave.group.on.close', 'internal.throw.on.fetch.stable.offset.unsupported',
    'metric.reporters', 'metrics.recording.level', 'partition.assignment.strategy',
    'share.acknowledgement.mode',
))  # fmt: skip
#: Options that take one of their values only: what it is, and why no other.
_FIXED = {
    'partitioner.ignore.keys': ('false', 'the column partition says where a row goes'),
    'transaction.two.phase.commit.enable': ('false', 'transactions are Spark batches'),
}
#: Java's own default partitioner, under all of its names; others are classes of Java.
_PARTITIONERS = ('', 'org.apache.kafka.clients.producer.internals.DefaultPartitioner')
_LEVELS = {codec: 'compression.%s.level' % codec for codec in ('gzip', 'lz4', 'zstd')}
#: Rows that are no text, or that a BoundedReader and a sink have no use for.
_NO_TEXT = frozenset((
    'consumer_timeout_ms', 'default_offset_commit_callback', 'metric_group_prefix',
    'socket_options', 'fetch_max_buffered_bytes', 'raise_on_too_large',
))  # fmt: skip
#: Options of connections that security_options.py leaves to this file.
_NOT_OF_LOGINS = ('security_protocol', 'proxy_url', 'socks5_proxy')
_NUMBER = re.compile(r'[+-]?[0-9]{1,19}\Z')
_LARGEST = 2**63 - 1
_LARGEST_INT = 2**31 - 1
_PAUSE_MS = 60000

Rows = Dict[str, config.Option]


def _rows_of(face: config.Face) -> Rows:
    """Return rows by the names that they have here: Java's, and ours with dots."""
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
    """Return how an option of ours is written here, without the prefix."""
    row = config.OPTIONS[name]
    if row.java_name is not None:
        return row.java_name
    return row.dotted[0] if row.dotted else name.replace('_', '.')


def is_kafka_name(name: str) -> bool:
    """Tell whether a name without a prefix is one of Kafka's: then the prefix was forgotten."""
    return '.' in name and (name in _CONSUMER or name in _PRODUCER or is_of_security(name))


def consumer_config(given: Mapping[str, str]) -> Dict[str, Any]:
    """Return options of BoundedReader and KafkaConsumer, none of a group among them.

    Arguments: given: texts by names as Java has them, without ``kafka.``, in small letters.
    Raises InvalidOptionError, which shows no secret.
    """
    named = _named(given, _NOT_OF_SOURCES)
    found = _read(named, _CONSUMER, {*_PRODUCER, *_FIXED, *_LEVELS.values()})
    found.pop('group_id', None)
    # Nobody makes a topic by asking what there is in it, nor commits what Spark keeps.
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
    """Look for a cluster as long as Java's clients wait for one that is away."""
    if 'bootstrap_timeout_ms' not in found and 'api_version_auto_timeout_ms' not in found:
        found['bootstrap_timeout_ms'] = limit_ms


def _settle_idle(found: Dict[str, Any]) -> None:
    """Keep connections for longer than an answer may take, of which Java makes no condition."""
    default = config.OPTIONS['connections_max_idle_ms'].default
    idle, answer = found.get('connections_max_idle_ms', default), found.get('request_timeout_ms', 0)
    if 0 <= idle <= answer:
        found['connections_max_idle_ms'] = answer + _PAUSE_MS


def _named(given: Mapping[str, str], refused: Mapping[str, str]) -> Dict[str, str]:
    """Return texts by names with dots, which may have been given with underscores."""
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
            '%spartitioner.class must be left out, not %s: %s, but a column partition can say where'
            ' rows go' % (PREFIX, shown(name), _CLASSES)
        )


def _level_of(rest: Dict[str, str]) -> Optional[int]:
    """Take the levels of all codecs out, and return that of the codec in use."""
    codec = rest.get('compression.type', '')
    levels = {each: rest.pop(name) for each, name in _LEVELS.items() if name in rest}
    row = _PRODUCER['compression.level']
    read = {each: read_text(row, _LEVELS[each], text) for each, text in levels.items()}
    return read.get(codec)


def _read(given: Mapping[str, str], rows: Rows, others: AbstractSet[str]) -> Dict[str, Any]:
    """Return what is given under our names.

    Arguments: rows: of this side; others: those of the other side, which count nothing here: one
    map of options may serve a reader and a writer.
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
        hint = 'did you mean %s%s?' % (PREFIX, near[0]) if near else 'no client of Kafka has it'
    return 'there is no option %s%s: %s' % (PREFIX, name[:60], hint)


_SECURED = [java_name(name) for name in config.SECURITY] + ['sasl.jaas.config']


def read_text(row: config.Option, name: str, text: str) -> Any:
    """Return what a text means for a row: the first reading of it that is of the row's kind.

    Arguments: name: of the option, without the prefix. Raises InvalidOptionError.
    """
    if text == '-1' and row.name in ('receive_buffer_bytes', 'send_buffer_bytes'):
        return None  # as the system has it
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


#: The last options that nothing was wrong with. A query reads its own anew for each micro-batch,
#: and what may be said of them in the log, such as that a password is sent in the clear, is said
#: once by this.
_passed: List[Tuple[config.Face, Dict[str, Any]]] = []
_PASSED_AT_MOST = 16


def _check(face: config.Face, found: Dict[str, Any]) -> None:
    """Raise for options that contradict each other, or lack something, by their names here."""
    if (face, found) in _passed:
        return
    try:
        SecuritySettings.from_options(config.resolve(face, found))
    except KafkaConfigurationError as error:
        text = in_java(str(error.args[0]))
        # Nobody gave one: it is what exactlyOnce needs.
        text = text.replace(PREFIX + 'transactional.id', 'exactlyOnce')
        raise InvalidOptionError(text) from None
    del _passed[: 1 - _PASSED_AT_MOST]
    _passed.append((face, config.hidden(found)))


# Names of one word stand in texts as words, but for these.
_IN_TEXTS = ['acks', 'retries', *(name for name in config.OPTIONS if '_' in name)]
_OURS = re.compile(r'(?<![\w.])(%s)\b' % '|'.join(_IN_TEXTS))
#: The usual way to give user and password here, of which clients do not know.
_JAAS, _USER = 'kafka.sasl.jaas.config', 'kafka.sasl.username'


def in_java(text: str) -> str:
    """Return a text about clients with the names that options have here."""
    found = _OURS.sub(_in_java, text)
    if _USER in found and _JAAS not in found:
        found += ' (user name and password are usually set by %s)' % _JAAS
    return found


@contextmanager
def java_names() -> Iterator[None]:
    """Let errors of clients, while this lasts, name options as they are named here."""
    try:
        yield
    except KafkaError as error:
        error.args = tuple(in_java(each) if isinstance(each, str) else each for each in error.args)
        raise


def _in_java(found: Any) -> str:
    return PREFIX + java_name(found.group(1))
