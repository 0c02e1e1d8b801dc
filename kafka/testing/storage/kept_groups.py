"""Groups of a durable cluster, to and from the journal.

As in Kafka, a classic group is restored as it was when it was last stable, with its generation,
members and assignments; members have their session time-out to send a heartbeat. A rebalance in
progress is lost. KIP-848 groups are restored with members and targets, share groups with their
start offsets; streams groups are not stored.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Mapping, TypeVar

from kafka.protocol.group import JoinGroupRequest, JoinGroupRequestProtocol
from kafka.testing.groups.classic_group import ClassicGroup
from kafka.testing.groups.consumer_group import ConsumerGroup, ConsumerMember
from kafka.testing.groups.group_members import JoinCall, Member
from kafka.testing.groups.group_states import GroupState
from kafka.testing.groups.server_assignors import TopicPartition
from kafka.testing.groups.share_group import ShareGroup
from kafka.testing.state import ClusterState
from kafka.testing.storage.journal import Journal, Key
from kafka.testing.storage.kept_state import bytes_of, text_of

Values = Mapping[Key, Any]
T = TypeVar('T')

#: A version of JoinGroup that has all fields of a member.
_JOIN_VERSION = 5


class KeptGroups:
    """Writes the groups of a cluster to the journal when they change."""

    def __init__(self, journal: Journal, state: ClusterState) -> None:
        self._journal = journal
        self._state = state
        self._noted: Dict[Key, Any] = {}  # by key, what a change is recognised by

    def note(self) -> None:
        """Put groups that have changed into the journal."""
        groups = self._state.groups
        there = set()
        for classic in groups.all():
            key = 'group', classic.group_id
            there.add(key)
            if classic.state in (GroupState.STABLE, GroupState.EMPTY):
                sign = classic.state, classic.generation, tuple(classic.members)
                self._put(key, sign, self._classic, classic)
        for group in groups.consumers.all():
            key = 'consumer_group', group.group_id
            there.add(key)
            self._put(key, _sign(group), self._consumer, group)
        for share in groups.shares.all():
            key = 'share_group', share.group_id
            there.add(key)
            self._put(key, _share_group(share), _share_group, share)
        for key in set(self._noted) - there:
            del self._noted[key]
            self._journal.forget(key)

    def _put(self, key: Key, sign: Any, value: Callable[[T], Any], group: T) -> None:
        """Put a group into the journal, unless ``sign`` is the same as the last time."""
        if self._noted.get(key) != sign:
            self._noted[key] = sign
            self._journal.put(key, value(group))

    def restore(self, values: Values) -> None:
        """Restore groups from the values of the journal."""
        groups = self._state.groups
        for key, value in values.items():
            if key[0] == 'group':
                group = groups.take_back(key[1])
                self._restore_classic(group, value)
                self._noted[key] = None
            elif key[0] == 'consumer_group':
                self._restore_consumer(groups.consumers.take_back(key[1]), value)
                self._noted[key] = None
            elif key[0] == 'share_group':
                share = groups.shares.make(key[1])
                if share is not None:
                    share.epoch, share.assignment_epoch, stored = value
                    share.stored = {
                        (bytes.fromhex(name), at): offset for name, at, offset in stored
                    }
                self._noted[key] = None

    # ------------------------------------------------------------ times of empty groups

    def _wall_ms(self, empty_since: float) -> int:
        clock = self._state.timers.clock
        return clock.wall_ms() - int((clock.monotonic() - empty_since) * 1000)

    def _monotonic(self, wall_ms: int) -> float:
        clock = self._state.timers.clock
        return clock.monotonic() - (clock.wall_ms() - wall_ms) / 1000

    # ------------------------------------------------------------ classic groups

    def _classic(self, group: ClassicGroup) -> Dict[str, Any]:
        return {
            'generation': group.generation,
            'type': group.protocol_type,
            'protocol': group.protocol_name,
            'leader': group.leader_id,
            'empty_ms': self._wall_ms(group.empty_since),
            'members': [_member(each) for each in group.members.values()],
        }

    def _restore_classic(self, group: ClassicGroup, value: Dict[str, Any]) -> None:
        members = [_restored_member(group.group_id, each) for each in value['members']]
        group.generation = value['generation']
        group.protocol_type, group.protocol_name = value['type'], value['protocol']
        group.empty_since = self._monotonic(value['empty_ms'])
        group.leader_id = value['leader']
        for member in members:
            group.members[member.member_id] = member
            if member.instance_id is not None:
                group.instances[member.instance_id] = member.member_id
            self._state.groups.budget.change(member.size)
            group.keep_alive(member)
        if members:
            group.state = GroupState.STABLE

    # ------------------------------------------------------------ KIP-848 groups

    def _consumer(self, group: ConsumerGroup) -> Dict[str, Any]:
        return {
            'epoch': group.epoch,
            'assignment_epoch': group.assignment_epoch,
            'empty_ms': self._wall_ms(group.empty_since),
            'regexes': {regex: sorted(names) for regex, names in group.regexes.items()},
            'target': {member: _places(found) for member, found in sorted(group.target.items())},
            'members': [_consumer_member(each) for each in group.members.values()],
        }

    def _restore_consumer(self, group: ConsumerGroup, value: Dict[str, Any]) -> None:
        group.epoch, group.assignment_epoch = value['epoch'], value['assignment_epoch']
        group.empty_since = self._monotonic(value['empty_ms'])
        group.target = {
            member: {(bytes.fromhex(topic_id), index) for topic_id, index in found}
            for member, found in value['target'].items()
        }
        members = [_restored_consumer_member(each) for each in value['members']]
        group.take_back(members, {regex: set(names) for regex, names in value['regexes'].items()})


def _share_group(group: ShareGroup) -> List[Any]:
    """Return the stored state of a share group; its members are not stored and join again."""
    stored = [[key[0].hex(), key[1], group.stored_offset(key)] for key in sorted(group.stored)]
    return [group.epoch, group.assignment_epoch, stored]


def _sign(group: ConsumerGroup) -> Any:
    members = tuple(
        (
            each.member_id,
            each.epoch,
            each.is_settled,
            frozenset(each.assigned.items()),
            frozenset(each.revoking),
        )
        for each in group.members.values()
    )
    return group.epoch, group.assignment_epoch, members


def _member(member: Member) -> List[Any]:
    return [
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.session_timeout_ms,
        member.rebalance_timeout_ms,
        [[name, text_of(metadata)] for name, metadata in member.protocols],
        text_of(member.assignment),
    ]


def _restored_member(group_id: str, value: List[Any]) -> Member:
    member_id, instance_id, client_id, client_host, session, rebalance, protocols, given = value
    request = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=session,
        rebalance_timeout_ms=rebalance,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type='',
        protocols=[
            JoinGroupRequestProtocol(name=name, metadata=bytes_of(metadata) or b'')
            for name, metadata in protocols
        ],
    )
    call = JoinCall(request, _JOIN_VERSION, client_id, client_host, lambda response: None)
    member = Member(member_id, call)
    member.assignment = bytes_of(given) or b''
    member.is_new = False
    return member


def _places(found: Iterable[TopicPartition]) -> List[Any]:
    return sorted([topic_id.hex(), index] for topic_id, index in found)


def _consumer_member(member: ConsumerMember) -> Dict[str, Any]:
    return {
        'id': member.member_id,
        'instance': member.instance_id,
        'rack': member.rack_id,
        'client': [member.client_id, member.client_host],
        'timeout_ms': member.rebalance_timeout_ms,
        'topics': sorted(member.topic_names),
        'regex': member.regex,
        'assignor': member.assignor,
        'epochs': [member.epoch, member.previous_epoch],
        'assigned': sorted([place[0].hex(), place[1], at] for place, at in member.assigned.items()),
        'revoking': _places(member.revoking),
        'settled': member.is_settled,
    }


def _restored_consumer_member(value: Dict[str, Any]) -> ConsumerMember:
    member = ConsumerMember(value['id'], *value['client'])
    member.instance_id, member.rack_id = value['instance'], value['rack']
    member.rebalance_timeout_ms = value['timeout_ms']
    member.topic_names = set(value['topics'])
    member.regex, member.assignor = value['regex'], value['assignor']
    member.epoch, member.previous_epoch = value['epochs']
    member.assigned = {
        (bytes.fromhex(topic_id), index): epoch for topic_id, index, epoch in value['assigned']
    }
    member.revoking = {(bytes.fromhex(topic_id), index) for topic_id, index in value['revoking']}
    member.is_settled = value['settled']
    return member
