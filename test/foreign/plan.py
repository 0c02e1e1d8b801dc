"""Which steps there are on which releases, and what the cluster does to the client meanwhile.

Owns the order of the steps, the topics that they find, and the faults. What a step does at the
client stands in steps.py.
"""

from __future__ import annotations

import contextlib
import struct
import threading
from typing import Any, Callable, ContextManager, Dict, Iterator, List, NamedTuple, Tuple

from kafka.testing import Cluster
from kafka.testing.faults import DropResponse

CODECS = ('none', 'gzip', 'snappy', 'lz4', 'zstd')
LOST_ANSWERS = 3
#: Where an entry of a log has its magic, and for each magic the byte with its codec.
MAGIC, ATTRIBUTES, ENTRY_HEADER, CODEC_MASK = 16, (17, 17, 22), 12, 7


@contextlib.contextmanager
def in_peace(cluster: Cluster, topic: str) -> Iterator[Callable[[], int]]:
    """Leave the client alone."""
    yield lambda: 0


@contextlib.contextmanager
def without_new_topics(cluster: Cluster, topic: str) -> Iterator[Callable[[], int]]:
    """Make no topics for those who ask: a client may ask for one that was just deleted."""
    before = cluster.state.defaults
    cluster.state.defaults = before._replace(auto_create_topics=False)
    try:
        yield lambda: 0
    finally:
        cluster.state.defaults = before


@contextlib.contextmanager
def losing_answers(cluster: Cluster, topic: str) -> Iterator[Callable[[], int]]:
    """Apply some of its writes and close the connection instead of an answer."""
    with cluster.faults.add(DropResponse(), 'Produce', times=LOST_ANSWERS, skip=1) as fault:

        def check() -> int:
            if fault.hits != LOST_ANSWERS:
                raise AssertionError('%d answers were to be lost, not %r' % (LOST_ANSWERS, fault))
            return 1

        yield check


@contextlib.contextmanager
def killing_the_leader(cluster: Cluster, topic: str) -> Iterator[Callable[[], int]]:
    """Let the leader of partition 0 die, and come back."""
    before = cluster.leader(topic, 0)
    events = [
        threading.Timer(0.8, cluster.kill, [before]),
        threading.Timer(1.7, cluster.restart, [before]),
    ]
    for each in events:
        each.start()

    def check() -> int:
        if cluster.leader(topic, 0) == before:
            raise AssertionError('the leader did not change')
        return 1

    try:
        yield check
    finally:
        for each in events:
            each.join()


Meanwhile = Callable[[Cluster, str], ContextManager[Callable[[], int]]]


class Step(NamedTuple):
    """A row of the table: the verb of steps.py, what it is told, its topics, its releases."""

    name: str
    verb: str
    how: Dict[str, Any] = {}
    partitions: int = 0  # of the topic that it finds; 0 for none
    source: bool = False  # whether it gets another topic to read from
    since: Tuple[int, ...] = (0,)
    meanwhile: Meanwhile = in_peace
    is_guarded: bool = False  # whether it gets a cluster where one logs in

    @property
    def codec(self) -> str:
        """The codec that it writes with, empty if others need not read what it wrote."""
        return str(self.how.get('codec', ''))


STEPS: List[Step] = [
    *(
        Step(
            'write and read, %s' % codec,
            'write',
            {'codec': codec},
            2,
            since=(2, 1) if codec == 'zstd' else (0,),
        )
        for codec in CODECS
    ),
    Step('look up offsets', 'look_up', {}, 2),
    Step('group of two', 'group', {'protocol': 'classic'}, 4, since=(0, 9)),
    Step('next generation group', 'group', {'protocol': 'consumer'}, 4, since=(4, 0)),
    Step('share group', 'share', {}, 1, since=(4, 2)),
    Step('idempotence', 'idempotence', {}, 1, since=(0, 11), meanwhile=losing_answers),
    Step('transactions', 'transactions', {}, 2, source=True, since=(0, 11)),
    Step(
        'death of a leader',
        'death',
        {'idempotent': False},
        1,
        since=(0, 9),
        meanwhile=killing_the_leader,
    ),
    Step('topic made by use', 'make_by_use'),
    Step('logins over TLS, and ACLs', 'log_in', since=(0, 10), is_guarded=True),
    Step('administration', 'admin', since=(0, 10, 1), meanwhile=without_new_topics),
]


def stored_codecs(cluster: Cluster, topic: str) -> List[str]:
    """Return the names of the codecs that a topic's records are stored in, sorted."""
    found = set()
    for partition in cluster.state.topics[topic].partitions:
        log = partition.log
        data, start = log.read(0, log.end_offset, 1 << 30, True), 0
        while start < len(data):
            (size,) = struct.unpack_from('>i', data, start + 8)
            found.add(data[start + ATTRIBUTES[data[start + MAGIC]]] & CODEC_MASK)
            start += ENTRY_HEADER + size
    return sorted(CODECS[number] for number in found)
