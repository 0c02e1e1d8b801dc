"""The clients of one process: made when they are needed, kept for the next task.

Owns who may use them: a ReaderClient is lent to one task at a time, a KafkaProducer is for all.
Spark reuses its Python workers, which are forked from a daemon: a client belongs to the process
that made it, and what a fork inherits is left alone.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Mapping, Tuple

from kafka import config as options
from kafka.consumer.reader_client import ReaderClient
from kafka.net.loop import Loop
from kafka.producer import KafkaProducer

__all__ = ['close_all', 'discard', 'producer', 'reader_client']

#: So many reader clients without work are kept.
MOST_IDLE = 8

_Key = Tuple[int, Any]
_lock = threading.Lock()
_idle: List[Tuple[_Key, ReaderClient]] = []  # the longest without work first
_producers: Dict[_Key, KafkaProducer] = {}


def _key(config: Mapping[str, Any]) -> _Key:
    return os.getpid(), tuple(sorted((name, repr_of(value)) for name, value in config.items()))


def repr_of(value: Any) -> Any:
    """Return something to compare a value of an option by: itself, if it can be."""
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return type(value).__name__, value


@contextmanager
def reader_client(config: Mapping[str, Any]) -> Iterator[ReaderClient]:
    """Lend a client for readers with some options; who fails with it, it is closed for.

    Raises: KafkaConfigurationError.
    """
    key = _key(config)
    client = _take(key)
    if client is None:
        resolved = options.resolve(options.CONSUMER, config)
        client = ReaderClient(resolved, lambda: Loop(name='kafka-spark-reader'))
    try:
        yield client
    except BaseException:  # what it waits for nobody takes any more
        client.close()
        raise
    _give_back(key, client)


def _take(key: _Key) -> Any:
    with _lock:
        for index, (its, client) in enumerate(_idle):
            if its == key:
                del _idle[index]
                return client
    return None


def _give_back(key: _Key, client: ReaderClient) -> None:
    with _lock:
        _idle[:] = [each for each in _idle if each[0][0] == os.getpid()]
        _idle.append((key, client))
        closing = [each for _, each in _idle[:-MOST_IDLE]]
        del _idle[:-MOST_IDLE]
    for each in closing:
        each.close()


def producer(config: Mapping[str, Any]) -> KafkaProducer:
    """Return the producer of this process with some options.

    Raises: KafkaConfigurationError, NoBrokersAvailable.
    """
    key = _key(config)
    with _lock:
        made = _producers.get(key)
        if made is None:
            made = _producers[key] = KafkaProducer(**config)
        return made


def discard(made: KafkaProducer, timeout: float = 1.0) -> None:
    """Close a producer that failed, and let the next task have another one.

    Arguments: timeout: seconds for what it has still to send.
    """
    with _lock:
        for key in [key for key, each in _producers.items() if each is made]:
            del _producers[key]
    made.close(timeout)


def close_all(timeout: float = 10.0) -> None:
    """Close all clients of this process that no task works with.

    Arguments: timeout: seconds that each producer gets for what it has still to send.
    """
    with _lock:
        mine = os.getpid()
        closing = [client for key, client in _idle if key[0] == mine]
        _idle.clear()
        sending = [made for key, made in _producers.items() if key[0] == mine]
    for client in closing:
        client.close()
    for made in sending:
        discard(made, timeout)
