"""The releases of Apache Kafka that an embedded broker can behave as, and their API versions.

The table of versions is that of clients (kafka.protocol.release_ranges). Requests outside of the
supported versions are handled in :mod:`kafka.testing.connection`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Mapping, NamedTuple, Tuple

from kafka.protocol.release_ranges import NEWEST, RELEASES, TABLE, ranges_in

__all__ = ['NEWEST', 'RELEASES', 'TELEMETRY', 'BrokerRelease', 'broker_release']

# The same for the APIs between brokers, which a release lists too: clients use them to detect
# ZooKeeper. An embedded cluster lists them but does not support them.
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
#: GetTelemetrySubscriptions and PushTelemetry, if the cluster accepts metrics of clients.
TELEMETRY: Ranges = {71: (0, 0), 72: (0, 0)}
HEARTBEAT = 12


class BrokerRelease(NamedTuple):
    """A release of Apache Kafka as a broker.

    ``name`` is one of :data:`RELEASES`. ``served`` has the supported versions, by API key;
    ``listed`` those in ApiVersions, and ``between_brokers`` those of the APIs that only brokers
    use.
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
        """Whether it stores its metadata in ZooKeeper: up to 3.2, as brokers are usually run."""
        return self.version < (3, 3)

    @property
    def highest_magic(self) -> int:
        """The newest message format that it stores."""
        return 0 if self.version < (0, 10) else 1 if self.version < (0, 11) else 2


@lru_cache(maxsize=None)
def _numbers(name: str) -> Tuple[int, ...]:
    return tuple(int(part) for part in name.split('.'))


def broker_release(version: str) -> BrokerRelease:
    """Return a release by its number; more digits than in the table are accepted (``2.8.2``).

    Raises ValueError, naming the known ones, for any other; TypeError unless it is a str.
    """
    if not isinstance(version, str):
        raise TypeError('version must be str, such as %r, not %r' % (NEWEST, version))
    for name in RELEASES:
        if version == name or version.startswith(name + '.'):
            return _made(name)
    raise ValueError(
        'unknown version %r of an embedded broker, use one of %s' % (version, ', '.join(RELEASES))
    )


def _made(name: str) -> BrokerRelease:
    listed = ranges_in(TABLE, name)
    served = dict(listed)
    if name == '0.8.2':
        served[HEARTBEAT] = 0, 0  # it is decoded, and the response is an error
    if listed[PRODUCE][1] >= 12:
        # 4.0 and later list 0, for old librdkafka, and support 3 and later (KAFKA-18659).
        served[PRODUCE] = 3, listed[PRODUCE][1]
    return BrokerRelease(name, served, listed, ranges_in(_BETWEEN_BROKERS, name))
