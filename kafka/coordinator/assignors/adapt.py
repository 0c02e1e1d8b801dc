"""The interface through which a member calls assignors of all releases, and those of programs.

A member of a classic group asks an Assignor for the subscription to join with, for the assignment
of all members, and tells it its own. Assignors of 1.x and 2.x are mostly classes with class
methods, which are told the assignment alone; those of 3.0 are objects, which are told the
generation too and get a list of members. An assignor may also be given by name: 'range',
'roundrobin', 'sticky', 'cooperative-sticky'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, Optional, Sequence

from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.stickiness import Claims, withhold
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.coordinator.assignors.subscriptions import (
    GroupSubscription,
    Partition,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    flat,
    read_assignment,
    read_metadata,
    shown_to_assignors,
)
from kafka.errors import IllegalStateError, KafkaConfigurationError
from kafka.partitioner.adapt import takes

if TYPE_CHECKING:
    from kafka.cluster import ClusterMetadata

__all__ = [
    'Assignor',
    'GroupSubscription',
    'adapt_assignors',
    'decode_assignment',
    'decode_subscription',
]

NAMED: Mapping[str, type] = {
    made.name: made
    for made in (
        RangePartitionAssignor,
        RoundRobinPartitionAssignor,
        StickyPartitionAssignor,
        CooperativeStickyAssignor,
    )
}
DEFAULT = (RangePartitionAssignor, RoundRobinPartitionAssignor)


class Assignor:
    """An assignor as a member of a classic group uses it.

    Arguments: made: an object, or a class that is used as one; name; is_cooperative.

    Attributes: name: what the group knows it by; is_cooperative: whether a member keeps what it
        owns while the group rebalances, which all assignors of a consumer have to be able to.
    """

    def __init__(self, made: Any, name: str, is_cooperative: bool) -> None:
        self.name = name
        self.is_cooperative = is_cooperative
        self._made = made
        told = getattr(made, 'on_assignment', None)
        self._told = told if callable(told) else None
        self._told_generation = self._told is not None and takes(self._told, 2)

    def __repr__(self) -> str:
        return '<Assignor %s%s>' % (self.name, ' cooperative' if self.is_cooperative else '')

    def subscription(
        self,
        topics: Iterable[str],
        owned: Iterable[Partition] = (),
        generation: int = -1,
        rack: Optional[str] = None,
    ) -> bytes:
        """Return what to tell the group when joining.

        Arguments: owned, generation: what the member has and since when; only told where the
            assignor is cooperative; rack: the option client_rack.
        Raises: what the assignor's metadata() raises; ValueError for what cannot be encoded.
        """
        wanted = read_metadata(self._made.metadata(set(topics)))
        # What the consumer knows of itself counts: the assignor has not heard of losses.
        if self.is_cooperative:
            wanted = wanted._replace(owned=list(owned), generation=generation)
        else:
            wanted = wanted._replace(owned=(), generation=-1)
        return encode_subscription(wanted._replace(rack=rack or wanted.rack))

    def assign(
        self, cluster: ClusterMetadata, members: Mapping[str, GroupSubscription]
    ) -> Dict[str, bytes]:
        """Return what each member of the group gets: {member id: bytes for SyncGroup}.

        A cooperative one gives nobody what somebody else still owns, even if it was written to.

        Raises: what the assignor raises; IllegalStateError where it gives to who is no member;
            TypeError where it returns no mapping.
        """
        wanted = [each._replace(member_id=name) for name, each in members.items()]
        result = self._made.assign(cluster, shown_to_assignors(wanted))
        if not isinstance(result, Mapping):
            raise TypeError(
                'assign() of the assignor %s has to return {member id: assignment}, not %s'
                % (self.name, type(result).__name__)
            )
        strangers = sorted(str(member) for member in result.keys() - members.keys())
        if strangers:
            raise IllegalStateError(
                'the assignor %s gave partitions to %s, which is no member of the group'
                % (self.name, ', '.join(strangers))
            )
        given = {name: _read_share(result[name]) for name in members if name in result}
        shares = {name: list(given[name].owned) if name in given else [] for name in members}
        if self.is_cooperative:
            shares = withhold(shares, wanted, Claims.of(wanted))
        return {
            name: encode_assignment(
                share, given[name].user_data if name in given else b'', int(self.is_cooperative)
            )
            for name, share in shares.items()
        }

    def on_assignment(self, assignment: bytes, generation: int) -> None:
        """Tell the assignor what its member got. Raises what it raises; ProtocolError."""
        if self._told is None:
            return
        got = read_assignment(assignment)
        if self._told_generation:
            self._told(got, generation)
            return
        self._told(got)
        told_generation = getattr(self._made, 'on_generation_assignment', None)
        if callable(told_generation):  # 2.x
            told_generation(generation)


def _read_share(assignment: Any) -> GroupSubscription:
    """Return as `owned` what somebody is to get, given as an object of any era or as bytes."""
    if isinstance(assignment, (bytes, bytearray, memoryview)):
        assignment = read_assignment(bytes(assignment))
    user_data = getattr(assignment, 'user_data', None)
    topics = getattr(assignment, 'assignment', None)
    if topics is None:
        topics = [(each.topic, each.partitions) for each in assignment.assigned_partitions]
    return GroupSubscription(member_id='', owned=flat(topics), user_data=user_data)


def adapt_assignors(given: Any = ()) -> List[Assignor]:
    """Return assignors of any era behind one call, what the program likes best first.

    If one of them cannot be cooperative, none is.

    Arguments: given: names, classes and objects, or one of them; nothing means range, roundrobin.
    Raises: KafkaConfigurationError for what is no assignor, and for two of one name.
    """
    if isinstance(given, (str, type)) or not isinstance(given, Iterable):
        given = [given]
    made = [_make(each) for each in list(given) or DEFAULT]
    names = [_name(each) for each in made]
    if len(set(names)) < len(names):
        raise KafkaConfigurationError(
            'partition_assignment_strategy has two assignors of one name: %s' % ', '.join(names)
        )
    is_cooperative = all(_can_cooperate(each) for each in made)
    return [Assignor(each, name, is_cooperative) for each, name in zip(made, names)]


def _make(given: Any) -> Any:
    """Return what has the methods of an assignor: an object, or a class with class methods."""
    found = NAMED.get(given) if isinstance(given, str) else given
    if not all(callable(getattr(found, name, None)) for name in ('assign', 'metadata')):
        raise KafkaConfigurationError(
            'partition_assignment_strategy takes names (%s), classes and objects with assign()'
            ' and metadata(), not %r' % (', '.join(NAMED), given)
        )
    if not isinstance(found, type) or _is_of_class(found):
        return found
    try:
        return found()
    except TypeError as error:
        raise KafkaConfigurationError(
            'the assignor %s cannot be made without arguments; pass an object (%s)'
            % (found.__name__, error)
        ) from error


def _is_of_class(found: type) -> bool:
    """Return True if a class is used as it is, because its methods are those of the class."""
    defined: Dict[str, Any] = {}
    for each in reversed(found.__mro__):
        defined.update(vars(each))
    methods = [defined[name] for name in ('assign', 'metadata')]
    of_class = all(isinstance(method, (classmethod, staticmethod)) for method in methods)
    return of_class and not isinstance(defined.get('name'), property)


def _name(made: Any) -> str:
    name = getattr(made, 'name', None)
    if callable(name):
        name = name()
    if not isinstance(name, str) or not name:
        raise KafkaConfigurationError(
            'the assignor %r has no name, by which members of a group know it' % (made,)
        )
    return name


def _can_cooperate(made: Any) -> bool:
    supported = getattr(made, 'supported_protocols', None)
    if not callable(supported):
        return False
    # A class that is used as one may have an ordinary method here, from its base.
    protocols: Sequence[Any] = supported() if takes(supported, 0) else supported(made)
    return RebalanceProtocol.COOPERATIVE in list(protocols)
