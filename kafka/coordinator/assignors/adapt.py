"""Adapter by which a member of a classic group calls assignors written for any release.

A member gets the subscription for JoinGroup from an Assignor, as the leader also the assignment of
all members, and passes its own assignment to it. Assignors of 1.x and 2.x are mostly classes with
class methods, whose on_assignment() has no generation; those of 3.0 are objects, whose
on_assignment() has the generation and whose assign() gets a list of members. An assignor may also
be given by name: 'range', 'roundrobin', 'sticky', 'cooperative-sticky'.
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
    """An assignor of a member of a classic group.

    Arguments: made: an object, or a class that is used like an object; name; is_cooperative.

    Attributes: name: the protocol name in the group; is_cooperative: whether a member keeps its
        partitions while the group rebalances, which all assignors of a consumer must support.
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
        """Return the encoded subscription for JoinGroup.

        Arguments: owned, generation: the owned partitions and the generation that assigned them,
            used only if the assignor is cooperative; rack: the option client_rack.
        Raises: the errors of the assignor's metadata(); ValueError if it cannot be encoded.
        """
        wanted = read_metadata(self._made.metadata(set(topics)))
        # The partitions that the consumer owns, not those of the assignor: it is not notified of
        # lost partitions.
        if self.is_cooperative:
            wanted = wanted._replace(owned=list(owned), generation=generation)
        else:
            wanted = wanted._replace(owned=(), generation=-1)
        return encode_subscription(wanted._replace(rack=rack or wanted.rack))

    def assign(
        self, cluster: ClusterMetadata, members: Mapping[str, GroupSubscription]
    ) -> Dict[str, bytes]:
        """Return the assignment of each member: {member id: bytes for SyncGroup}.

        If the assignor is cooperative, partitions that another member still owns are withheld, even
        if the assignor of the program does not do that.

        Raises: the errors of the assignor; IllegalStateError if it assigns to an unknown member;
            TypeError if it does not return a mapping.
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
        """Pass the assignment of its member to the assignor. Raises its errors; ProtocolError."""
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
    """Return an assignment in `owned`, from an object of any release or from bytes."""
    if isinstance(assignment, (bytes, bytearray, memoryview)):
        assignment = read_assignment(bytes(assignment))
    user_data = getattr(assignment, 'user_data', None)
    topics = getattr(assignment, 'assignment', None)
    if topics is None:
        topics = [(each.topic, each.partitions) for each in assignment.assigned_partitions]
    return GroupSubscription(member_id='', owned=flat(topics), user_data=user_data)


def adapt_assignors(given: Any = ()) -> List[Assignor]:
    """Return the Assignors of a member, the preferred one first.

    They are cooperative only if all of them can be.

    Arguments: given: names, classes and objects, or one of them; the default is range, roundrobin.
    Raises: KafkaConfigurationError for an object that is not an assignor, and for two of the same
        name.
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
    """Return an object, or a class with class methods, that has the methods of an assignor."""
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
    """Return True if a class is used without an object, because it has class methods."""
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
    # A class with class methods may inherit an instance method here.
    protocols: Sequence[Any] = supported() if takes(supported, 0) else supported(made)
    return RebalanceProtocol.COOPERATIVE in list(protocols)
