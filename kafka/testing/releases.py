"""Which release of Apache Kafka an embedded broker is, and which versions of each API it serves.

Owns what follows from a release alone; the table of versions is that of clients. What a release
does with a request outside its ranges is :mod:`kafka.testing.connection`'s business.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Mapping, NamedTuple, Tuple

from kafka.protocol.release_ranges import NEWEST, RELEASES, TABLE, ranges_in

__all__ = ['NEWEST', 'RELEASES', 'TELEMETRY', 'BrokerRelease', 'broker_release']

# The same of the calls between brokers, which a release lists too: clients tell by them whether
# there is a ZooKeeper. An embedded cluster lists them and has none.
_BETWEEN_BROKERS = """
4 0.10.0:0 1.0:1 2.2:2 2.4:4 2.8:5 3.2:6 3.3:none
5 0.10.0:0 2.2:1 2.4:2 2.6:3 3.3:none
6 0.10.0:2 0.10.2:3 1.0:4 2.2:5 2.4:6 2.8:7 3.3:none
7 0.10.0:1-1 1.0:1 2.2:2 2.4:3 3.3:none
56 2.7:0 3.2:1 3.3:none
67 3.0:0 3.3:none
83 4.1:0
84 4.1:0
85 4.1:0 4.2:1
86 4.1:0
87 4.1:0 4.2:1
"""

Ranges = Mapping[int, Tuple[int, int]]

PRODUCE = 0
#: GetTelemetrySubscriptions and PushTelemetry, where somebody receives the metrics of clients.
TELEMETRY: Ranges = {71: (0, 0), 72: (0, 0)}
HEARTBEAT = 12


class BrokerRelease(NamedTuple):
    """A release of Apache Kafka as a broker.

    ``name`` is one of :data:`RELEASES`. ``served`` is which versions it answers, by API key;
    ``listed`` is what ApiVersions says of them, and ``between_brokers`` of the calls that only
    brokers make.
    """

    name: str
    served: Ranges
    listed: Ranges
    between_brokers: Ranges

    @property
    def version(self) -> Tuple[int, ...]:
        """The number as integers, for comparisons: ``(0, 10, 2)``."""
        return _numbers(self.name)

    @property
    def has_zookeeper(self) -> bool:
        """Whether it keeps its metadata in ZooKeeper: up to 3.2, as brokers are usually run."""
        return self.version < (3, 3)

    @property
    def highest_magic(self) -> int:
        """The newest format of records that it stores."""
        return 0 if self.version < (0, 10) else 1 if self.version < (0, 11) else 2


@lru_cache(maxsize=None)
def _numbers(name: str) -> Tuple[int, ...]:
    return tuple(int(part) for part in name.split('.'))


def broker_release(version: str) -> BrokerRelease:
    """Return a release by its number; more digits than the table has are fine (``2.8.2``).

    Raises ValueError, naming those there are, for any other; TypeError for what is no str.
    """
    if not isinstance(version, str):
        raise TypeError('version must be str, such as %r, not %r' % (NEWEST, version))
    for name in RELEASES:
        if version == name or version.startswith(name + '.'):
            return _made(name)
    raise ValueError(
        'version %r is no release that an embedded broker can be: there are %s'
        % (version, ', '.join(RELEASES))
    )


def _made(name: str) -> BrokerRelease:
    listed = ranges_in(TABLE, name)
    served = dict(listed)
    if name == '0.8.2':
        served[HEARTBEAT] = 0, 0  # it can read one, and answers with an error
    if listed[PRODUCE][1] >= 12:
        # 4.0 and later list 0, for old librdkafka, and answer 3 and later (KAFKA-18659).
        served[PRODUCE] = 3, listed[PRODUCE][1]
    return BrokerRelease(name, served, listed, ranges_in(_BETWEEN_BROKERS, name))
