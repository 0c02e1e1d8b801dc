"""A group whose members hand over what they have, one to another: a consumer or a streams group.

Owns static members, the way from what a member has to its target (KIP-848, "Reconciliation"), and
which commits its epoch allows (KIP-1251 for those of earlier epochs).
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
    """A member: what it has, and what it shall give back."""

    def __init__(self, member_id: str, client_id: str, client_host: str) -> None:
        super().__init__(member_id, client_id, client_host)
        self.instance_id: Optional[str] = None
        self.rebalance_timeout_ms = 0
        #: What it may use, with the epoch in which it got each; and what it shall give back.
        self.assigned: Dict[Unit, int] = {}
        self.revoking: Set[Unit] = set()
        #: Whether it has all of its target.
        self.is_settled = False
        self.revocation: Optional[Deadline] = None

    @property
    def holds(self) -> Set[Unit]:
        """What nobody else may have yet."""
        return self.revoking | set(self.assigned)

    def take_over(self: HM, other: HM) -> None:
        """Become what a static member was that has left for a while."""
        self.rack_id = other.rack_id
        self.rebalance_timeout_ms = other.rebalance_timeout_ms
        self.previous_epoch = other.previous_epoch
        self.assigned = other.assigned


HM = TypeVar('HM', bound=HandoverMember[Any])
#: The heartbeats of members.
HR = TypeVar('HR', bound=Union[ConsumerGroupHeartbeatRequest, StreamsGroupHeartbeatRequest])


class HandoverGroup(EpochGroup[HM, HR, Unit]):
    """One group.

    Arguments: rules: those of its kind; on_empty: is told its id when the last member has gone.
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
        """Return the member that sends a heartbeat, made if it joins, or an error."""
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
            self._forget(known)  # it begins anew as the other one
        member = self._new_member(request, client_id, client_host)
        self._replace(old, member)
        return NONE, self._enter(member)

    def _instance_error(self, request: HR) -> int:
        """Return what is wrong with the instance id of who says to be a member."""
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
        """Let a member be the one with an instance id, and no more with the one it had."""
        if member.instance_id is not None:
            self._instances.pop(member.instance_id, None)
        member.instance_id = instance_id
        if instance_id is not None:
            self._instances[instance_id] = member.member_id

    def _replace(self, old: HM, member: HM) -> None:
        """Let a static member that left for a while come back under another id."""
        member.take_over(old)
        self.target[member.member_id] = self.target.pop(old.member_id, set())
        self._forget(old)

    def _epoch_error(self, member: HM, request: HR) -> int:
        epoch = request.member_epoch
        if epoch == member.epoch or (epoch == JOIN_EPOCH and self._rules.version >= (4, 2)):
            return NONE
        # Its last answer may have been lost.
        is_last = epoch == member.previous_epoch and epoch < member.epoch
        return NONE if is_last and self._owns_its_own(member, request) else FENCED_MEMBER_EPOCH

    def _owns_its_own(self, member: HM, request: HR) -> bool:
        """Tell whether a member says what it owns, and has been given all of that."""
        raise NotImplementedError

    def leave(self, request: HR) -> int:
        """Let a member go for good, or for a while if static; return the error."""
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
        """Bring a member nearer to its target, as far as it and the others have given back.

        Arguments: owned: what it says it has, None if it says nothing.
        Returns: False while it keeps what it shall give back: then nothing has changed.
        """
        if member.revoking:
            if owned is None or owned & member.revoking:
                return False
            member.revoking.clear()
        surplus = set(member.assigned) - target
        for each in surplus:
            del member.assigned[each]
        # A member that has just joined owns nothing, whatever it had.
        if surplus and owned is not None:
            surplus &= owned
        if surplus and member.epoch > JOIN_EPOCH:
            self._revoke(member, surplus)
            return True
        if member.revocation is not None:
            member.revocation.cancel()
        self._set_epoch(member, max(1, self.assignment_epoch))  # 0 stands for joining
        others = [each.holds for each in self.members.values() if each is not member]
        for each in target.difference(member.assigned, *others):
            member.assigned[each] = member.epoch
        member.is_settled = set(member.assigned) == target
        return True

    def _revoke(self, member: HM, surplus: Set[Unit]) -> None:
        """Wait for a member to give back what it does not get any more."""
        member.revoking, member.is_settled = surplus, False
        self._limit_revocation(member)

    def _limit_revocation(self, member: HM) -> None:
        if member.revocation is not None:
            member.revocation.set(member.rebalance_timeout_ms / 1000)

    # ------------------------------------------------------------ commits

    def commit_error(
        self, epoch: int, member_id: str, version: int, partitions: List[TopicPartition]
    ) -> int:
        """Return why a commit is refused. version: of OffsetCommit."""
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
        # KIP-1251: an earlier epoch will do for what the member had then already.
        had_all = all(self._has_had(member, epoch, each) for each in partitions)
        return NONE if had_all else STALE_MEMBER_EPOCH

    def _has_had(self, member: HM, epoch: int, partition: TopicPartition) -> bool:
        """Tell whether a member has a partition since an epoch, or for longer."""
        raise NotImplementedError

    def transactional_commit_error(self, epoch: int, member_id: str) -> int:
        """Return why offsets in a transaction are refused."""
        if epoch < 0 and (not self.members or not member_id):
            return NONE
        return self._stale_error(epoch, member_id, ILLEGAL_GENERATION)

    def fetch_error(self, epoch: int, member_id: Optional[str]) -> int:
        """Return why OffsetFetch is refused."""
        if member_id is None and epoch < 0:
            return NONE
        return self._stale_error(epoch, member_id or '', STALE_MEMBER_EPOCH)

    def _stale_error(self, epoch: int, member_id: str, error: int) -> int:
        """Return what is wrong with a member: an error if it is in another epoch."""
        member = self.members.get(member_id)
        if member is None:
            return UNKNOWN_MEMBER_ID
        return NONE if epoch == member.epoch else error

    def is_subscribed(self, topic: str) -> bool:
        """Tell whether members read a topic."""
        raise NotImplementedError
