"""A cache of the clients of one process: created when needed, kept for the next task.

A ReaderClient or PreparedTransactions is used by one task at a time. A KafkaProducer is shared by
all tasks with the same options, and closed when it has no users and was idle for too long, when
there are too many, or because a task failed with it. Spark reuses its Python workers, which are
forked from a daemon: a client belongs to the process that created it, and inherited ones are not
touched.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from kafka import config as options
from kafka.consumer.bounded.client import ReaderClient
from kafka.internals.cleanup import clean_up
from kafka.producer import KafkaProducer
from kafka.producer.two_phase_commit import PreparedTransactions

__all__ = ['ProducerLoan', 'close_all', 'prepared', 'producer', 'reader_client']

#: The number of idle clients of readers and of transactions that are kept.
MOST_IDLE = 8
#: The number of idle producers that are kept, and for how many seconds; Spark's own connector keeps
#: them for the same time (spark.kafka.producer.cache.timeout).
MOST_IDLE_PRODUCERS = 4
IDLE_SECONDS = 600.0
#: How long closing a producer may take to send its remaining records: no task waits for them.
_CLOSING_SECONDS = 1.0

_Key = Tuple[int, Any]
# Guards the three variables below and the user counts. Reentrant: a generator that holds a client
# may be collected, and closed, at any allocation.
_lock = threading.RLock()
_idle: List[Tuple[_Key, Any]] = []  # the longest idle first
_producers: Dict[_Key, _Shared] = {}


class _Shared:
    """A producer that tasks share.

    Attributes: made: None until the first task has created it; making: a lock held while it is
    being created; users: the number of tasks that use it; idle_since: when the last of them
    returned it; is_bad: a task failed with it.
    """

    def __init__(self) -> None:
        self.made: Optional[KafkaProducer] = None
        self.making = threading.Lock()
        self.users = 0
        self.idle_since = 0.0
        self.is_bad = False


def _key(config: Mapping[str, Any]) -> _Key:
    return os.getpid(), tuple(sorted((name, repr_of(value)) for name, value in config.items()))


def repr_of(value: Any) -> Any:
    """Return a hashable stand-in for the value of an option: with its type, or its repr."""
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return type(value).__name__, value


# ------------------------------------------------------------ for one task at a time


@contextmanager
def reader_client(config: Mapping[str, Any]) -> Iterator[ReaderClient]:
    """Lend a client for readers with these options; it is closed if the block raises an error.

    Raises: KafkaConfigurationError.
    """

    def make() -> ReaderClient:
        resolved = options.resolve(options.CONSUMER, config)
        return ReaderClient(resolved, 'kafka-spark-reader')

    with _lent(('reader', _key(config)), make) as client:
        yield client


@contextmanager
def prepared(config: Mapping[str, Any]) -> Iterator[PreparedTransactions]:
    """Lend a client for prepared transactions, as reader_client() does."""
    with _lent(('prepared', _key(config)), lambda: PreparedTransactions(**config)) as client:
        yield client


@contextmanager
def _lent(key: Any, make: Callable[[], Any]) -> Iterator[Any]:
    client = _take(key) or make()
    try:
        yield client
    except BaseException as error:  # its outstanding responses would be left unread
        clean_up(client.close, error)
        raise
    _give_back(key, client)


def _take(key: Any) -> Any:
    with _lock:
        for index, (its, client) in enumerate(_idle):
            if its == key:
                del _idle[index]
                return client
    return None


def _give_back(key: Any, client: Any) -> None:
    with _lock:
        _idle[:] = [each for each in _idle if each[0][1][0] == os.getpid()]
        _idle.append((key, client))
        closing = [each for _, each in _idle[:-MOST_IDLE]]
        del _idle[:-MOST_IDLE]
    for each in closing:
        each.close()


# ------------------------------------------------------------ for all tasks


class ProducerLoan:
    """A producer of this process that other tasks may use at the same time.

    Attributes: producer. It must be returned once, by one of the two methods.
    """

    def __init__(self, key: _Key, shared: _Shared, made: KafkaProducer) -> None:
        self.producer = made
        self._key = key
        self._shared = shared

    def __repr__(self) -> str:
        return '<ProducerLoan of %r>' % (self.producer,)

    def give_back(self) -> None:
        """Return it for use by the next task."""
        _leave(self._key, self._shared, True)

    def give_up(self) -> None:
        """Return it after a failure, so that no other task gets it.

        Tasks that use it continue, and records of this task are sent. If it has no other user it is
        closed, and its pending records are dropped: the batch will be written again.
        """
        _leave(self._key, self._shared, False)


def producer(config: Mapping[str, Any]) -> ProducerLoan:
    """Lend the producer of this process with these options.

    Raises: KafkaConfigurationError, NoBrokersAvailable.
    """
    key = _key(config)
    shared = _join(key)
    made: Optional[KafkaProducer] = None
    try:
        with shared.making:
            if shared.made is None:
                shared.made = KafkaProducer(**config)
            made = shared.made
    finally:
        if made is None:
            _leave(key, shared, False)
    return ProducerLoan(key, shared, made)


def _join(key: _Key) -> _Shared:
    with _lock:
        closing = _expired(time.monotonic())
        shared = _producers.setdefault(key, _Shared())
        shared.users += 1
    _close(closing, _CLOSING_SECONDS)
    return shared


def _leave(key: _Key, shared: _Shared, is_good: bool) -> None:
    with _lock:
        shared.users -= 1
        shared.idle_since = time.monotonic()
        shared.is_bad = shared.is_bad or not is_good
        if shared.is_bad and _producers.get(key) is shared:
            del _producers[key]
        closing = _expired(shared.idle_since)
        if shared.is_bad and not shared.users:
            closing.append(shared)
    for each in closing:
        _close([each], 0.0 if each.is_bad else _CLOSING_SECONDS)


def _expired(now: float) -> List[_Shared]:
    """Remove and return the producers without users that are idle for too long, or too many."""
    mine = os.getpid()
    for key in [key for key in _producers if key[0] != mine]:
        del _producers[key]
    idle = [key for key, each in _producers.items() if not each.users]
    idle.sort(key=lambda key: _producers[key].idle_since)
    surplus = max(0, len(idle) - MOST_IDLE_PRODUCERS)
    ends = [
        key
        for number, key in enumerate(idle)
        if number < surplus or now - _producers[key].idle_since >= IDLE_SECONDS
    ]
    return [_producers.pop(key) for key in ends]


def _close(closing: List[_Shared], timeout: float) -> None:
    for each in closing:
        if each.made is not None:
            each.made.close(timeout)


def close_all(timeout: float = 10.0) -> None:
    """Close all clients of this process that are not in use.

    Arguments: timeout: seconds for each producer to send its remaining records.
    """
    with _lock:
        mine = os.getpid()
        closing = [client for key, client in _idle if key[1][0] == mine]
        _idle.clear()
        keys = [key for key, each in _producers.items() if key[0] == mine and not each.users]
        sending = [_producers.pop(key) for key in keys]
    for client in closing:
        client.close()
    _close(sending, timeout)
