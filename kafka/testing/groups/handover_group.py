"""A group whose members revoke partitions or tasks before others get them: consumer or streams.

The base of consumer_group.py and streams_group.py: static members, reconciliation of assigned and
target (KIP-848, "Reconciliation"), and the checks of commits (KIP-1251 for earlier epochs).
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Generic, List, Optional, Set, Tuple, TypeVar, Union

from kafka.protocol.group import ConsumerGroupHeartbeatRequest
from kafka.protocol.streams import StreamsGroupHeartbeatRequest
from kafka.testing.errors import (
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    ILLEGAL_GENERATION,
    NONE,
    STALE_MEMBER_EPOCH,
    UNKNOWN_MEMBER_ID,
    UNRELEASED_INSTANCE_ID,
    UNSUPPORTED_VERSION,
)
from kafka.testing.groups.epoch_group import (
    JOIN_EPOCH,
    STATIC_LEAVE_EPOCH,
    EpochGroup,
    EpochGroupState,
    EpochMember,
    EpochRules,
    Unit,
)
from kafka.testing.groups.group_members import Deadline
from kafka.testing.groups.server_assignors import TopicPartition


class HandoverMember(EpochMember, Generic[Unit]):
    """A member with its assignment and the part of it that it has to revoke."""

    def __init__(self, member_id: str, client_id: str, client_host: str) -> None:
        super().__init__(member_id, client_id, client_host)
        self.instance_id: Optional[str] = None
        self.rebalance_timeout_ms = 0
        #: The current assignment, with the epoch of each; and what the member has to revoke.
        self.assigned: Dict[Unit, int] = {}
        self.revoking: Set[Unit] = set()
        #: Whether the member has its complete target.
        self.is_settled = False
        self.revocation: Optional[Deadline] = None

    @property
    def holds(self) -> Set[Unit]:
        """What no other member may get yet."""
        return self.revoking | set(self.assigned)

    def take_over(self: HM, other: HM) -> None:
        """Take over the state of a static member that left temporarily."""
        self.rack_id = other.rack_id
        self.rebalance_timeout_ms = other.rebalance_timeout_ms
        self.previous_epoch = other.previous_epoch
        self.assigned = other.assigned


HM = TypeVar('HM', bound=HandoverMember[Any])
#: The types of the heartbeat requests.
HR = TypeVar('HR', bound=Union[ConsumerGroupHeartbeatRequest, StreamsGroupHeartbeatRequest])


class HandoverGroup(EpochGroup[HM, HR, Unit]):
    """One consumer or streams group.

    Arguments: rules: what all groups of the type share; on_empty: called with the group id when
        the last member has left.
    """

    def __init__(self, group_id: str, rules: EpochRules, on_empty: Callable[[str], None]) -> None:
        super().__init__(group_id, rules)
        self.empty_since = rules.timers.clock.monotonic()
        self._on_empty = on_empty
        self._instances: Dict[str, str] = {}  # instance id -> member id

    def _state_of_members(self) -> EpochGroupState:
        if self.epoch > self.assignment_epoch:
            return EpochGroupState.ASSIGNING
        if all(m.is_settled and m.epoch == self.epoch for m in self.members.values()):
            return EpochGroupState.STABLE
        return EpochGroupState.RECONCILING

    # ------------------------------------------------------------ members

    def find(self, request: HR, client_id: str, client_host: str) -> Tuple[int, Optional[HM]]:
        """Return an error code, 0 for none, and the member of a heartbeat, created if it joins."""
        if request.member_epoch != JOIN_EPOCH:
            error = self._instance_error(request)
            return (error, None) if error else super().find(request, client_id, client_host)
        owner = self._instances.get(request.instance_id or '')
        if owner is None or owner == request.member_id:
            return super().find(request, client_id, client_host)
        old = self.members[owner]
        if old.epoch != STATIC_LEAVE_EPOCH:
            return UNRELEASED_INSTANCE_ID, None
        known = self.members.get(request.member_id)
        if known is not None:
            self._forget(known)  # it starts over as the static member
        member = self._new_member(request, client_id, client_host)
        self._replace(old, member)
        return NONE, self._enter(member)

    def _instance_error(self, request: HR) -> int:
        """Return the error code for the instance id of a heartbeat."""
        if request.instance_id is None:
            return NONE
        owner = self._instances.get(request.instance_id)
        if owner is None:
            return UNKNOWN_MEMBER_ID
        return NONE if owner == request.member_id else FENCED_INSTANCE_ID

    def _new_member(self, request: HR, client_id: str, client_host: str) -> HM:
        member = super()._new_member(request, client_id, client_host)
        member.instance_id = request.instance_id
        return member

    def _enter(self, member: HM) -> HM:
        super()._enter(member)
        self._set_instance(member, member.instance_id)
        member.revocation = self._deadline(member)
        return member

    def _set_instance(self, member: HM, instance_id: Optional[str]) -> None:
        """Assign an instance id to a member in place of the one it had."""
        if member.instance_id is not None:
            self._instances.pop(member.instance_id, None)
        member.instance_id = instance_id
        if instance_id is not None:
            self._instances[instance_id] = member.member_id

    def _replace(self, old: HM, member: HM) -> None:
        """Replace a static member that left temporarily by its new member id."""
        member.take_over(old)
        self.target[member.member_id] = self.target.pop(old.member_id, set())
        self._forget(old)

    def _epoch_error(self, member: HM, request: HR) -> int:
        epoch = request.member_epoch
        if epoch == member.epoch or (epoch == JOIN_EPOCH and self._rules.version >= (4, 2)):
            return NONE
        # The client may not have received the last response.
        is_last = epoch == member.previous_epoch and epoch < member.epoch
        return NONE if is_last and self._owns_its_own(member, request) else FENCED_MEMBER_EPOCH

    def _owns_its_own(self, member: HM, request: HR) -> bool:
        """Return True if a heartbeat reports owned units and all are assigned to the member."""
        raise NotImplementedError

    def leave(self, request: HR) -> int:
        """Remove a member, or keep a static one until its session ends; return the error code."""
        error = self._instance_error(request)
        member = self.members.get(request.member_id)
        if error or member is None:
            return error or UNKNOWN_MEMBER_ID
        if request.member_epoch == STATIC_LEAVE_EPOCH:
            member.epoch = STATIC_LEAVE_EPOCH
            member.revoking.clear()
            if member.revocation is not None:
                member.revocation.cancel()
            self.keep_alive(member)
        else:
            self.remove(member)
        return NONE

    def _ended(self) -> None:
        super()._ended()
        self.empty_since = self._rules.timers.clock.monotonic()
        self._on_empty(self.group_id)

    def _forget(self, member: HM) -> None:
        if self.members.get(member.member_id) is not member:
            return
        super()._forget(member)
        if member.instance_id is not None:
            self._instances.pop(member.instance_id, None)
        if member.revocation is not None:
            member.revocation.cancel()

    # ------------------------------------------------------------ reconciliation

    def _reconcile(self, member: HM, owned: Optional[Set[Unit]], target: Set[Unit]) -> bool:
        """Move a member toward its target, as far as it and other members have revoked.

        Arguments: owned: what the member reports to own, None if it reports nothing.
        Returns: False while the member has to revoke first: then nothing has changed.
        """
        if member.revoking:
            if owned is None or owned & member.revoking:
                return False
            member.revoking.clear()
        surplus = set(member.assigned) - target
        for each in surplus:
            del member.assigned[each]
        # A member that has just joined owns nothing, whatever was assigned before.
        if surplus and owned is not None:
            surplus &= owned
        if surplus and member.epoch > JOIN_EPOCH:
            self._revoke(member, surplus)
            return True
        if member.revocation is not None:
            member.revocation.cancel()
        self._set_epoch(member, max(1, self.assignment_epoch))  # epoch 0 means joining
        others = [each.holds for each in self.members.values() if each is not member]
        for each in target.difference(member.assigned, *others):
            member.assigned[each] = member.epoch
        member.is_settled = set(member.assigned) == target
        return True

    def _revoke(self, member: HM, surplus: Set[Unit]) -> None:
        """Wait for a member to revoke what is not in its target any more."""
        member.revoking, member.is_settled = surplus, False
        self._limit_revocation(member)

    def _limit_revocation(self, member: HM) -> None:
        if member.revocation is not None:
            member.revocation.set(member.rebalance_timeout_ms / 1000)

    # ------------------------------------------------------------ commits

    def commit_error(
        self, epoch: int, member_id: str, version: int, partitions: List[TopicPartition]
    ) -> int:
        """Return the error code of a commit. Arguments: version: version of OffsetCommit."""
        if epoch < 0 and not self.members:
            return NONE
        member = self.members.get(member_id)
        if member is None:
            return UNKNOWN_MEMBER_ID
        if version < 9:
            return UNSUPPORTED_VERSION
        if epoch == member.epoch:
            return NONE
        if epoch > member.epoch or self._rules.version < (4, 3):
            return STALE_MEMBER_EPOCH
        # KIP-1251: an earlier epoch is allowed for partitions that were assigned in it.
        had_all = all(self._has_had(member, epoch, each) for each in partitions)
        return NONE if had_all else STALE_MEMBER_EPOCH

    def _has_had(self, member: HM, epoch: int, partition: TopicPartition) -> bool:
        """Return True if a partition has been assigned to a member since an epoch or earlier."""
        raise NotImplementedError

    def transactional_commit_error(self, epoch: int, member_id: str) -> int:
        """Return the error code of offsets in a transaction."""
        if epoch < 0 and (not self.members or not member_id):
            return NONE
        return self._stale_error(epoch, member_id, ILLEGAL_GENERATION)

    def fetch_error(self, epoch: int, member_id: Optional[str]) -> int:
        """Return the error code of OffsetFetch."""
        if member_id is None and epoch < 0:
            return NONE
        return self._stale_error(epoch, member_id or '', STALE_MEMBER_EPOCH)

    def _stale_error(self, epoch: int, member_id: str, error: int) -> int:
        """Return UNKNOWN_MEMBER_ID, or ``error`` if the member is in another epoch, or 0."""
        member = self.members.get(member_id)
        if member is None:
            return UNKNOWN_MEMBER_ID
        return NONE if epoch == member.epoch else error

    def is_subscribed(self, topic: str) -> bool:
        """Return True if members subscribe to a topic."""
        raise NotImplementedError
