"""The partitions, group or transactional id of a request, which decide the broker it is sent to.

Used by the Pool, which finds the leader or coordinator. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, List, Optional, Set, Tuple

from kafka.errors import IllegalArgumentError, KafkaError
from kafka.protocol.wire import Message

if TYPE_CHECKING:
    from kafka.cluster import ClusterMetadata

__all__ = ['GROUP', 'SHARE_GROUP', 'TRANSACTION', 'group_of', 'leader_of', 'transaction_of']

# The key types of FindCoordinator.
GROUP, TRANSACTION, SHARE_GROUP = 0, 1, 2

_TOPIC_LISTS = ('topics', 'topic_data')
_PARTITION_LISTS = ('partitions', 'partition_data', 'partition_indexes')
_NUMBERS = ('partition_index', 'partition', 'index')


def partitions_of(request: Message) -> Iterator[Tuple[Any, int]]:
    """Yield (topic name, partition) for all partitions in a request."""
    for topic in _first(request, _TOPIC_LISTS, []):
        name = _first(topic, ('name', 'topic'), None)
        for partition in _first(topic, _PARTITION_LISTS, []):
            number = partition if isinstance(partition, int) else _first(partition, _NUMBERS, None)
            if number is not None:
                yield name, number


def _first(thing: Any, names: Tuple[str, ...], default: Any) -> Any:
    for name in names:
        if hasattr(thing, name):
            return getattr(thing, name)
    return default


def leader_of(request: Message, cluster: ClusterMetadata) -> Optional[int]:
    """Return the node id of the leader of all partitions; None if one has no known leader.

    Raises IllegalArgumentError if the partitions have several leaders, or if there is no partition.
    """
    leaders: Set[Optional[int]] = set()
    for topic, number in partitions_of(request):
        leaders.add(cluster.leader_for_partition((topic, number)))
    if leaders & {None, -1}:
        return None
    if len(leaders) != 1:
        raise IllegalArgumentError(
            '%s concerns %d leaders: send one request to each of them'
            % (type(request).__name__, len(leaders))
        )
    return leaders.pop()


def group_of(request: Message) -> str:
    """Return the group id of a request. Raises IllegalArgumentError unless it has exactly one."""
    return _only(request, ('group_id', 'group'), ('groups', 'groups_names', 'group_ids'))


def transaction_of(request: Message) -> str:
    """Return the transactional id of a request. Raises as group_of()."""
    return _only(
        request, ('transactional_id', 'v3_and_below_transactional_id'), ('transactional_ids',)
    )


def _only(request: Message, singular: Tuple[str, ...], plural: Tuple[str, ...]) -> str:
    name: Optional[str] = _first(request, singular, None)
    if name is not None:
        return name
    several: List[Any] = _first(request, plural, [])
    names = {each if isinstance(each, str) else group_of(each) for each in several}
    if len(names) != 1:
        raise IllegalArgumentError(
            '%s must be about one group or transactional id, not %d: say whose coordinator is meant'
            % (type(request).__name__, len(names))
        )
    return names.pop()


def is_fatal(error: BaseException) -> bool:
    """Return True if a retry cannot succeed until the program or a broker is changed."""
    return isinstance(error, KafkaError) and not error.retriable
