"""A classic group: a state machine of members, generations and assignments.

Called by the registry of groups (registry.py) and the handlers of group requests
(handlers/groups.py), which look up the group and encode the messages. Responses go to an outbox,
which is flushed once the state is settled. Follows the protocol guide ("Group Membership API"),
KIP-62, KIP-134, KIP-345, KIP-389, KIP-394, KIP-447, KIP-559 and KIP-814.
"""

from __future__ import annotations

from typing import Callable, Dict, List, Optional, Set

from kafka.errors import IllegalStateError
from kafka.protocol.group import (
    HeartbeatRequest,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from kafka.testing.errors import (
    COORDINATOR_NOT_AVAILABLE,
    FENCED_INSTANCE_ID,
    GROUP_MAX_SIZE_REACHED,
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    MEMBER_ID_REQUIRED,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_SERVER_ERROR,
)
from kafka.testing.groups.group_members import (
    MEMBER_BYTES,
    Deadline,
    JoinCall,
    Member,
    Reply,
    candidates,
    choice,
    join_refusal,
    protocols_size,
    subscribed_topics,
    told,
)
from kafka.testing.groups.group_states import TRANSITIONS, GroupRules, GroupState
from kafka.testing.timers import Timer

#: The session time-out of a member that has not been in a generation yet.
NEW_MEMBER_SECONDS = 300.0


class ClassicGroup:
    """One classic group.

    Arguments: rules: what all groups of the cluster share; on_empty: called with the group when
        its last member has been removed.
    """

    group_type = 'classic'

    def __init__(
        self, group_id: str, rules: GroupRules, on_empty: Callable[[ClassicGroup], None]
    ) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.generation = 0
        self.protocol_type: Optional[str] = None
        self.protocol_name: Optional[str] = None
        self.leader_id = ''
        self.members: Dict[str, Member] = {}
        self.instances: Dict[str, str] = {}  # instance id -> member id
        self._rules = rules
        self.empty_since = rules.timers.clock.monotonic()
        self._on_empty = on_empty
        self._pending: Dict[str, Timer] = {}  # assigned ids that have not joined
        self._unsynced: Set[str] = set()
        self._timer: Optional[Timer] = None  # of the rebalance
        self._delay_left_ms: Optional[int] = None  # of the initial rebalance delay
        self._has_newcomer = False

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

    @property
    def has_pending(self) -> bool:
        """Whether member ids were assigned with which no member has joined yet (KIP-394)."""
        return bool(self._pending)

    # ------------------------------------------------------------ join

    def join(self, call: JoinCall) -> None:
        """Process a JoinGroup; it may be answered much later, when the rebalance completes."""
        request = call.request
        if not self._has_place(request.member_id):
            self._drop(request.member_id)
            self._refuse(call, GROUP_MAX_SIZE_REACHED)
        elif self.state is GroupState.DEAD:
            self._refuse(call, COORDINATOR_NOT_AVAILABLE)
        elif not self._supports(call):
            self._refuse(call, INCONSISTENT_GROUP_PROTOCOL)
        elif not self._rules.budget.has_room(MEMBER_BYTES + protocols_size(call.protocols)):
            self._refuse(call, COORDINATOR_NOT_AVAILABLE)
        elif not request.member_id:
            self._join_unknown(call)
        elif request.member_id in self._pending:
            self._pending.pop(request.member_id).cancel()
            self._rules.budget.change(-MEMBER_BYTES - len(request.member_id))
            self._add(request.member_id, call)
        else:
            error = self.member_error(request.member_id, request.group_instance_id)
            if error:
                self._refuse(call, error)
            else:
                self._join_again(self.members[request.member_id], call)

    def _refuse(self, call: JoinCall, error: int, member_id: Optional[str] = None) -> None:
        name = call.request.member_id if member_id is None else member_id
        self._rules.outbox.put(
            call.reply, join_refusal(call.version, error, name, self._rules.no_generation)
        )

    def _join_unknown(self, call: JoinCall) -> None:
        """Process a JoinGroup without a member id: assign one, or ask for a join with it."""
        request = call.request
        instance = request.group_instance_id
        prefix = call.client_id if instance is None else instance
        member_id = '%s-%s' % (prefix, self._rules.new_id())
        if instance is not None:
            known = self.instances.get(instance)
            if known is None:
                self._add(member_id, call)
            else:
                self._replace(self.members[known], member_id, call)
        elif call.version >= 4:  # KIP-394
            self._pending[member_id] = self._rules.later(
                request.session_timeout_ms / 1000, lambda: self._drop(member_id)
            )
            self._rules.budget.change(MEMBER_BYTES + len(member_id))
            self._refuse(call, MEMBER_ID_REQUIRED, member_id)
        else:
            self._add(member_id, call)

    def _add(self, member_id: str, call: JoinCall) -> None:
        member = Member(member_id, call)
        if not self.members:
            self.protocol_type = call.request.protocol_type
        if not self.leader_id:
            self.leader_id = member_id
        self.members[member_id] = member
        self._rules.budget.change(member.size)
        if member.instance_id is not None:
            self.instances[member.instance_id] = member_id
        self._has_newcomer = True
        member.joining = call
        self._watch(member, NEW_MEMBER_SECONDS)
        self._rebalance()

    def _join_again(self, member: Member, call: JoinCall) -> None:
        """Process the JoinGroup of a known member."""
        is_same = member.protocols == call.protocols
        if self.state is GroupState.COMPLETING_REBALANCE and is_same:
            self._answer_current(member, call)  # the client has not received the first response
        elif self.state is GroupState.STABLE and is_same and member.member_id != self.leader_id:
            self._answer_current(member, call)
        else:
            self._update(member, call)
            member.joining = call
            self._rebalance()

    def _update(self, member: Member, call: JoinCall) -> None:
        before = member.size
        member.update(call)
        self._rules.budget.change(member.size - before)

    def _answer_current(self, member: Member, call: JoinCall) -> None:
        completing = self.state is GroupState.COMPLETING_REBALANCE
        self._rules.outbox.put(call.reply, self._joined(member, call, tells_members=completing))
        self.keep_alive(member)

    def _replace(self, member: Member, member_id: str, call: JoinCall) -> None:
        """Give a restarted static member a new member id and fence the old one (KIP-345)."""
        old_id, old_leader = member.member_id, self.leader_id
        self._answer_waiting(member, FENCED_INSTANCE_ID)
        self.members = {
            member_id if name == old_id else name: each for name, each in self.members.items()
        }
        member.member_id = member_id
        self.instances[member.instance_id or ''] = member_id
        if old_leader == old_id:
            self.leader_id = member_id
        if old_id in self._unsynced:
            self._unsynced.remove(old_id)
            self._unsynced.add(member_id)
        self._update(member, call)
        if self.state is GroupState.STABLE and choice(self.members.values()) == self.protocol_name:
            self._rules.outbox.put(call.reply, self._restarted(member, call, old_leader))
            self.keep_alive(member)
        else:
            member.joining = call
            self._rebalance()

    # ------------------------------------------------------------ rebalance

    def _rebalance(self) -> None:
        """Begin a rebalance, or complete the current one if all members have joined."""
        if self.state is GroupState.PREPARING_REBALANCE:
            self._try_complete()
            return
        if self.state is GroupState.COMPLETING_REBALANCE:
            self._answer_syncs(REBALANCE_IN_PROGRESS)
        was_empty = self.state is GroupState.EMPTY
        self._move(GroupState.PREPARING_REBALANCE)
        self._unsynced.clear()
        delay = self._rules.initial_delay_ms
        if was_empty and delay > 0 and self._rules.version >= (0, 11):  # KIP-134
            self._delay_left_ms = max(0, self._rebalance_timeout_ms - delay)
            self._set_timer(delay / 1000, self._collected)
            self._has_newcomer = False
        else:
            self._set_timer(self._rebalance_timeout_ms / 1000, self._complete)
            self._try_complete()

    @property
    def _rebalance_timeout_ms(self) -> int:
        return max((each.rebalance_timeout_ms for each in self.members.values()), default=0)

    def _collected(self) -> None:
        """Extend the initial delay if a member has joined during it, else complete (KIP-134)."""
        left = self._delay_left_ms or 0
        if self._has_newcomer and left > 0 and self.generation == 0:
            self._has_newcomer = False
            delay = min(self._rules.initial_delay_ms, left)
            self._delay_left_ms = left - delay
            self._set_timer(delay / 1000, self._collected)
        else:
            self._delay_left_ms = None
            self._complete()

    def _try_complete(self) -> None:
        if self._delay_left_ms is None and not self._pending:
            if all(each.joining for each in self.members.values()):
                self._complete()

    def _complete(self) -> None:
        """End the wait for members: remove those that have not joined, except static ones."""
        self._delay_left_ms = None
        keeps_static = self._rules.version >= (2, 3)
        for member in list(self.members.values()):
            if not (member.joining or (keeps_static and member.instance_id is not None)):
                self._remove(member)
        joined = [each for each in self.members.values() if each.joining]
        if self.members and not joined:
            self._set_timer(self._rebalance_timeout_ms / 1000, self._complete)
            return
        self._cancel_timer()
        if joined and not candidates(joined):
            self._stumble(joined)
            return
        self.generation += 1
        if not joined:
            self.protocol_name = None
            self._move(GroupState.EMPTY)
            self.empty_since = self._rules.timers.clock.monotonic()
            self._on_empty(self)
            return
        if not self.members[self.leader_id].joining:
            self.leader_id = joined[0].member_id
        self.protocol_name = choice(self.members.values())
        self._move(GroupState.COMPLETING_REBALANCE)
        self._answer_joins(joined)
        self._expect_syncs()

    def _stumble(self, joined: List[Member]) -> None:
        """Fail as brokers before 1.0 do without a common protocol: joins are never completed."""
        for member in joined if self._rules.version < (0, 11) else ():  # later ones do not answer
            call, member.joining = member.joining, None
            assert call is not None
            refusal = join_refusal(call.version, UNKNOWN_SERVER_ERROR, '', -1)
            self._rules.outbox.put(call.reply, refusal)

    def _answer_joins(self, joined: List[Member]) -> None:
        for member in joined:
            call, member.joining = member.joining, None
            assert call is not None
            self._rules.outbox.put(call.reply, self._joined(member, call, tells_members=True))
            member.is_new = False
        for member in self.members.values():
            self.keep_alive(member)

    def _expect_syncs(self) -> None:
        """Remove members that do not send SyncGroup within the rebalance time-out (3.0)."""
        self._unsynced = set(self.members)
        if self._rules.version >= (3, 0):
            self._set_timer(self._rebalance_timeout_ms / 1000, self._drop_unsynced)

    def _drop_unsynced(self) -> None:
        late = [self.members[name] for name in self._unsynced if name in self.members]
        self._unsynced.clear()
        for member in late:
            self._remove(member)
        if late:
            self._after_removal()

    # ------------------------------------------------------------ sync and heartbeat

    def sync(self, request: SyncGroupRequest, reply: Reply) -> None:
        """Process a SyncGroup; answered once the leader's SyncGroup has arrived."""
        error = self._call_error(
            request.member_id, request.group_instance_id, request.generation_id
        )
        if not error and self._disagrees(request):
            error = INCONSISTENT_GROUP_PROTOCOL
        if not error and self.state is GroupState.PREPARING_REBALANCE:
            error = REBALANCE_IN_PROGRESS
        if error:
            self._rules.outbox.put(reply, SyncGroupResponse(error_code=error, assignment=b''))
            return
        member = self.members[request.member_id]
        self._unsynced.discard(member.member_id)
        if self.state is GroupState.STABLE:
            self._rules.outbox.put(reply, self._synced(member))
            self.keep_alive(member)
        else:
            member.syncing = reply
            if member.member_id == self.leader_id:
                self._assign(request)
        if not self._unsynced and self.state is not GroupState.PREPARING_REBALANCE:
            self._cancel_timer()

    def _assign(self, request: SyncGroupRequest) -> None:
        given = {each.member_id: bytes(each.assignment) for each in request.assignments}
        size = sum(len(given.get(name, b'')) for name in self.members)
        stored = sum(len(each.metadata(self.protocol_name)) for each in self.members.values())
        if stored + size > self._rules.max_metadata_bytes or not self._rules.budget.has_room(size):
            # Larger than the largest record of __consumer_offsets.
            self._answer_syncs(UNKNOWN_SERVER_ERROR)
            self._rebalance()
            return
        for name, member in self.members.items():
            before = member.size
            member.assignment = given.get(name, b'')
            self._rules.budget.change(member.size - before)
        self._move(GroupState.STABLE)
        self._answer_syncs(NONE)

    def _answer_syncs(self, error: int) -> None:
        for member in self.members.values():
            if error:
                before = member.size
                member.assignment = b''
                self._rules.budget.change(member.size - before)
            reply, member.syncing = member.syncing, None
            if reply is not None:
                message = (
                    SyncGroupResponse(error_code=error, assignment=b'')
                    if error
                    else self._synced(member)
                )
                self._rules.outbox.put(reply, message)
                self.keep_alive(member)

    def heartbeat(self, request: HeartbeatRequest) -> int:
        """Restart the session time-out of a member; return the error code of the response."""
        if self._rules.version < (0, 10) and self.state is not GroupState.STABLE:
            return REBALANCE_IN_PROGRESS
        error = self._call_error(
            request.member_id, request.group_instance_id, request.generation_id
        )
        if error:
            return error
        self.keep_alive(self.members[request.member_id])
        if self.state is GroupState.PREPARING_REBALANCE:
            return REBALANCE_IN_PROGRESS
        if self.state is GroupState.COMPLETING_REBALANCE and self._rules.version < (2, 6):
            return REBALANCE_IN_PROGRESS
        return NONE

    # ------------------------------------------------------------ leave

    def leave(self, member_id: str, instance_id: Optional[str]) -> int:
        """Remove a member by member id, instance id or both; return the error code."""
        if self.state is GroupState.DEAD:
            return COORDINATOR_NOT_AVAILABLE
        if not member_id and instance_id is not None:
            member_id = self.instances.get(instance_id, '')
        if member_id in self._pending:
            self._drop(member_id)
            return NONE
        error = self.member_error(member_id, instance_id)
        if not error:
            self._drop(member_id)
        return error

    def _drop(self, member_id: str) -> None:
        """Remove a member or an assigned member id, and continue the rebalance without it."""
        pending = self._pending.pop(member_id, None)
        if pending is not None:
            pending.cancel()
            self._rules.budget.change(-MEMBER_BYTES - len(member_id))
        elif member_id in self.members:
            self._remove(self.members[member_id])
        else:
            return
        self._after_removal(is_pending=pending is not None)

    def _after_removal(self, is_pending: bool = False) -> None:
        if self.state is GroupState.PREPARING_REBALANCE:
            self._try_complete()
        elif is_pending and self.state is GroupState.EMPTY and not self._pending:
            self._on_empty(self)
        elif not is_pending and self.state in (
            GroupState.STABLE,
            GroupState.COMPLETING_REBALANCE,
        ):
            self._rebalance()

    def _remove(self, member: Member) -> None:
        """Remove a member; its pending JoinGroup or SyncGroup is answered with an error."""
        self._answer_waiting(member, UNKNOWN_MEMBER_ID)
        del self.members[member.member_id]
        self._rules.budget.change(-member.size)
        if member.session is not None:
            member.session.cancel()
        if member.instance_id is not None:
            self.instances.pop(member.instance_id, None)
        self._unsynced.discard(member.member_id)
        if member.member_id == self.leader_id:
            self.leader_id = next(iter(self.members), '')

    def _answer_waiting(self, member: Member, error: int) -> None:
        joining, member.joining = member.joining, None
        syncing, member.syncing = member.syncing, None
        if joining is not None:
            name = member.member_id if error == FENCED_INSTANCE_ID else ''
            self._refuse(joining, error, name)
        if syncing is not None:
            self._rules.outbox.put(syncing, SyncGroupResponse(error_code=error, assignment=b''))

    def die(self) -> None:
        """End the group: its members are removed and no request reaches it any more."""
        for member in list(self.members.values()):
            self._remove(member)
        for member_id, timer in self._pending.items():
            timer.cancel()
            self._rules.budget.change(-MEMBER_BYTES - len(member_id))
        self._pending.clear()
        self._cancel_timer()
        self._move(GroupState.DEAD)

    # ------------------------------------------------------------ responses and places

    def _has_place(self, member_id: str) -> bool:
        """Return True if ``group.max.size`` allows a member to join (KIP-389)."""
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
        """Return the response to a restarted static member that keeps its assignment (KIP-814)."""
        if call.version < 9:  # it must not assign: the leader has the old id
            response = self._joined(member, call, tells_members=False)
            response.leader = old_leader
            return response
        response = self._joined(member, call, tells_members=True)
        response.skip_assignment = member.member_id == self.leader_id
        return response

    # ------------------------------------------------------------ syncs

    def _disagrees(self, request: SyncGroupRequest) -> bool:
        """Return True if a SyncGroup names another protocol than the chosen one (KIP-559)."""
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

    # ------------------------------------------------------------ checks

    def member_error(self, member_id: str, instance_id: Optional[str]) -> int:
        """Return the error code for a member id and instance id, 0 if they match a member."""
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
        """Return the error code of a commit; a valid one restarts the session time-out."""
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
        """Return the error code of TxnOffsetCommit: without member and generation, no fencing."""
        if generation < 0 and (
            self.state is GroupState.EMPTY or (not member_id and instance_id is None)
        ):
            return NONE
        return self._call_error(member_id, instance_id, generation)

    def is_subscribed(self, topic: str) -> bool:
        """Return True if a member subscribes to a topic, or its metadata cannot be decoded."""
        for member in self.members.values():
            topics = subscribed_topics(member.metadata(self.protocol_name))
            if topics is None or topic in topics:
                return True
        return False

    # ------------------------------------------------------------ time

    def keep_alive(self, member: Member) -> None:
        """Restart the session time-out of a member."""
        self._watch(member, member.session_timeout_ms / 1000)

    def _watch(self, member: Member, seconds: float) -> None:
        if member.session is None:
            rules = self._rules
            member.session = Deadline(rules.timers, rules.outbox, lambda: self._expire(member))
        member.session.set(seconds)

    def _expire(self, member: Member) -> None:
        """Remove a member whose session has expired, unless it is waiting for a response."""
        if member.syncing or (member.joining and not member.is_new):
            self.keep_alive(member)
        else:
            self._drop(member.member_id)

    def _set_timer(self, seconds: float, call: Callable[[], None]) -> None:
        self._cancel_timer()
        self._timer = self._rules.later(seconds, call)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
