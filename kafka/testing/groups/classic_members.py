"""The members of a classic group and its generation: what they are told, and whom it refuses.

Owns these, the state of the group, and the checks of requests that only look at them; what happens
to them is in classic_group.py. Follows the protocol guide ("Group Membership API"), KIP-345,
KIP-389, KIP-447, KIP-559 and KIP-814.
"""

from __future__ import annotations

from typing import Dict, Optional

from kafka.errors import IllegalStateError
from kafka.protocol.group import JoinGroupResponse, SyncGroupRequest, SyncGroupResponse
from kafka.testing.errors import (
    COORDINATOR_NOT_AVAILABLE,
    FENCED_INSTANCE_ID,
    ILLEGAL_GENERATION,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)
from kafka.testing.groups.group_members import (
    Deadline,
    JoinCall,
    Member,
    candidates,
    subscribed_topics,
    told,
)
from kafka.testing.groups.group_states import TRANSITIONS, GroupRules, GroupState


class ClassicMembers:
    """The members of one group. Arguments: rules: those of the cluster."""

    group_type = 'classic'

    def __init__(self, group_id: str, rules: GroupRules) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.generation = 0
        self.protocol_type: Optional[str] = None
        self.protocol_name: Optional[str] = None
        self.leader_id = ''
        self.members: Dict[str, Member] = {}
        self.instances: Dict[str, str] = {}  # instance id -> member id
        self._rules = rules

    def __repr__(self) -> str:
        return '<ClassicGroup %s %s generation=%d, %d members>' % (
            self.group_id,
            self.state.value,
            self.generation,
            len(self.members),
        )

    def _move(self, state: GroupState) -> None:
        if state not in TRANSITIONS[self.state]:
            raise IllegalStateError(
                'group %r cannot go from %s to %s' % (self.group_id, self.state.name, state.name)
            )
        self.state = state

    # ------------------------------------------------------------ joins

    def _has_place(self, member_id: str) -> bool:
        """Tell whether ``group.max.size`` lets a member in (KIP-389)."""
        limit = self._rules.max_size
        if self._rules.version < (2, 2) or self.state in (GroupState.EMPTY, GroupState.DEAD):
            return True
        if self.state is GroupState.PREPARING_REBALANCE:
            member = self.members.get(member_id)
            awaited = [each for each in self.members.values() if each.joining]
            return (member is not None and member.joining is not None) or len(awaited) < limit
        return member_id in self.members or len(self.members) < limit

    def _supports(self, call: JoinCall) -> bool:
        request = call.request
        names = {name for name, _ in call.protocols}
        if not self.members:
            is_unchecked = self._rules.version < (1, 0)
            return is_unchecked or bool(request.protocol_type and names)
        return request.protocol_type == self.protocol_type and bool(
            names & candidates(self.members.values())
        )

    def _joined(self, member: Member, call: JoinCall, *, tells_members: bool) -> JoinGroupResponse:
        is_told = tells_members and member.member_id == self.leader_id
        return JoinGroupResponse(
            error_code=NONE,
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=self.leader_id,
            member_id=member.member_id,
            members=told(self.members.values(), self.protocol_name) if is_told else [],
        )

    def _restarted(self, member: Member, call: JoinCall, old_leader: str) -> JoinGroupResponse:
        """Return the answer to a static member that takes up where it was."""
        if call.version < 9:  # it must not assign, so it is not told that it leads
            response = self._joined(member, call, tells_members=False)
            response.leader = old_leader
            return response
        response = self._joined(member, call, tells_members=True)
        response.skip_assignment = member.member_id == self.leader_id
        return response

    # ------------------------------------------------------------ syncs

    def _disagrees(self, request: SyncGroupRequest) -> bool:
        """Tell whether it speaks of another protocol than was chosen (KIP-559)."""
        return (
            request.protocol_type is not None and request.protocol_type != self.protocol_type
        ) or (request.protocol_name is not None and request.protocol_name != self.protocol_name)

    def _synced(self, member: Member) -> SyncGroupResponse:
        return SyncGroupResponse(
            error_code=NONE,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            assignment=member.assignment,
        )

    # ------------------------------------------------------------ whom it refuses

    def member_error(self, member_id: str, instance_id: Optional[str]) -> int:
        """Return what is wrong with the name of a member."""
        if instance_id is not None:
            owner = self.instances.get(instance_id)
            if owner is not None and owner != member_id:
                return FENCED_INSTANCE_ID
            if owner is None and self._rules.version >= (3, 0):
                return UNKNOWN_MEMBER_ID
        return NONE if member_id in self.members else UNKNOWN_MEMBER_ID

    def _call_error(self, member_id: str, instance_id: Optional[str], generation: int) -> int:
        if self.state is GroupState.DEAD:
            return COORDINATOR_NOT_AVAILABLE
        error = self.member_error(member_id, instance_id)
        if not error and generation != self.generation:
            error = ILLEGAL_GENERATION
        return error

    def commit_error(self, generation: int, member_id: str, instance_id: Optional[str]) -> int:
        """Return why a commit is refused; one that is not counts as a heartbeat."""
        empty = self.state is GroupState.EMPTY
        if generation < 0 and empty:
            return NONE
        if self.state is GroupState.COMPLETING_REBALANCE and self._rules.version < (2, 4):
            return REBALANCE_IN_PROGRESS
        if generation < 0 and not member_id and instance_id is None:
            return UNKNOWN_MEMBER_ID
        error = self._call_error(member_id, instance_id, generation)
        if error:
            return error
        self.keep_alive(self.members[member_id])
        if self.state is GroupState.COMPLETING_REBALANCE:
            return REBALANCE_IN_PROGRESS
        return NONE

    def transactional_commit_error(
        self, generation: int, member_id: str, instance_id: Optional[str]
    ) -> int:
        """Return why offsets in a transaction are refused: nothing is fenced without names."""
        if generation < 0 and (
            self.state is GroupState.EMPTY or (not member_id and instance_id is None)
        ):
            return NONE
        return self._call_error(member_id, instance_id, generation)

    def is_subscribed(self, topic: str) -> bool:
        """Tell whether a member consumes a topic, as far as that can be read."""
        for member in self.members.values():
            topics = subscribed_topics(member.metadata(self.protocol_name))
            if topics is None or topic in topics:
                return True
        return False

    # ------------------------------------------------------------ time

    def keep_alive(self, member: Member) -> None:
        """Begin a member's session time-out anew."""
        self._watch(member, member.session_timeout_ms / 1000)

    def _watch(self, member: Member, seconds: float) -> None:
        if member.session is None:
            rules = self._rules
            member.session = Deadline(rules.timers, rules.outbox, lambda: self._expire(member))
        member.session.set(seconds)

    def _expire(self, member: Member) -> None:
        """Do what must be done with a member whose time is over."""
        raise NotImplementedError
