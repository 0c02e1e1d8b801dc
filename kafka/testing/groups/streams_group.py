"""A streams group: members with epochs, a topology, and which member runs which tasks (KIP-1071).

Owns one group. What may be asked at all is checked by streams_groups.py, what a topology makes of
the topics that there are by streams_topology.py. Warm-up tasks are never given out.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Callable, Dict, List, Mapping, NamedTuple, Optional, Set, Tuple

from kafka.protocol.streams import (
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatTopology,
    TaskIds,
    TaskOffset,
)
from kafka.testing.errors import (
    COORDINATOR_NOT_AVAILABLE,
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    GROUP_MAX_SIZE_REACHED,
    ILLEGAL_GENERATION,
    INVALID_REQUEST,
    NONE,
    STALE_MEMBER_EPOCH,
    UNKNOWN_MEMBER_ID,
    UNRELEASED_INSTANCE_ID,
    UNSUPPORTED_VERSION,
)
from kafka.testing.groups.group_members import MEMBER_BYTES, Budget, Deadline, Outbox
from kafka.testing.groups.server_assignors import TopicPartition, uniform
from kafka.testing.groups.streams_topology import (
    ASSIGNMENT_DELAYED,
    SHUTDOWN_APPLICATION,
    STALE_TOPOLOGY,
    Configured,
    Problem,
    Task,
    configure,
    size_of,
    sources_of,
    stateful_parts,
)
from kafka.testing.timers import Timer, Timers

if TYPE_CHECKING:
    from kafka.testing.state import Topic

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2


class StreamsGroupState(enum.Enum):
    """Where a group is; values are the names that StreamsGroupDescribe gives."""

    EMPTY = 'Empty'
    NOT_READY = 'NotReady'
    ASSIGNING = 'Assigning'
    RECONCILING = 'Reconciling'
    STABLE = 'Stable'
    DEAD = 'Dead'


class StreamsGroupRules(NamedTuple):
    """What all streams groups of a cluster have in common.

    ``setting`` returns a group's setting that is a number, by group and name; ``create`` creates
    internal topics.
    """

    version: Tuple[int, ...]
    timers: Timers
    outbox: Outbox
    budget: Budget
    topics: Mapping[str, Topic]
    max_size: int
    setting: Callable[[str, str], int]
    create: Callable[[Configured], None]


class StreamsMember:
    """A member: what it says of itself, and its tasks."""

    def __init__(self, member_id: str, client_id: str, client_host: str) -> None:
        self.member_id = member_id
        self.client_id = client_id
        self.client_host = client_host
        self.instance_id: Optional[str] = None
        self.rack_id: Optional[str] = None
        self.process_id = ''
        self.rebalance_timeout_ms = 0
        self.topology_epoch = -1
        self.endpoint: Optional[Endpoint] = None
        self.client_tags: List[KeyValue] = []
        self.task_offsets: List[TaskOffset] = []
        self.task_end_offsets: List[TaskOffset] = []
        self.epoch = 0
        self.previous_epoch = 0
        #: Active tasks with the epoch in which it got each, those to give back, and standby ones.
        self.active: Dict[Task, int] = {}
        self.revoking: Set[Task] = set()
        self.standby: Set[Task] = set()
        self.is_settled = False
        self.session: Optional[Deadline] = None
        self.revocation: Optional[Deadline] = None

    def __repr__(self) -> str:
        return '<StreamsMember %s epoch=%d, %d active, %d standby tasks>' % (
            self.member_id,
            self.epoch,
            len(self.active),
            len(self.standby),
        )

    @property
    def size(self) -> int:
        """The bytes that it stands for."""
        names = (self.member_id, self.client_id, self.instance_id or '', self.process_id)
        tags = sum(len(each.key) + len(each.value) + 128 for each in self.client_tags)
        offsets = 128 * (len(self.task_offsets) + len(self.task_end_offsets))
        return MEMBER_BYTES + 2 * sum(map(len, names)) + tags + offsets

    @property
    def about(self) -> Tuple[object, ...]:
        """What makes the group assign anew when it changes."""
        return (
            self.instance_id,
            self.rack_id,
            self.process_id,
            self.rebalance_timeout_ms,
            self.topology_epoch,
            None if self.endpoint is None else (self.endpoint.host, self.endpoint.port),
            tuple((each.key, each.value) for each in self.client_tags),
        )

    def take_over(self, other: StreamsMember) -> None:
        """Become what a static member was that has left for a while."""
        self.instance_id, self.rack_id = other.instance_id, other.rack_id
        self.process_id, self.endpoint = other.process_id, other.endpoint
        self.rebalance_timeout_ms = other.rebalance_timeout_ms
        self.topology_epoch, self.client_tags = other.topology_epoch, other.client_tags
        self.previous_epoch = other.previous_epoch
        self.active, self.standby = other.active, other.standby


class StreamsGroup:
    """One group.

    Arguments: rules: those of the cluster; on_empty: is told its id when the last member has gone.
    """

    group_type = 'streams'
    protocol_type = 'streams'
    assignor = 'sticky'

    def __init__(
        self, group_id: str, rules: StreamsGroupRules, on_empty: Callable[[str], None]
    ) -> None:
        self.group_id = group_id
        self.epoch = 1
        self.assignment_epoch = 1 if rules.version >= (4, 3) else 0
        self.members: Dict[str, StreamsMember] = {}
        self.topology: Optional[StreamsGroupHeartbeatTopology] = None
        self.configured: Optional[Configured] = None
        self.active: Dict[str, Set[Task]] = {}
        self.standby: Dict[str, Set[Task]] = {}
        self.endpoint_epoch = 0
        self.empty_since = rules.timers.clock.monotonic()
        self.is_dead = False
        self._rules = rules
        self._on_empty = on_empty
        self._instances: Dict[str, str] = {}
        self._seen: Dict[str, Tuple[bytes, int]] = {}  # topics of the topology as last seen
        self._assigned_at: Optional[float] = None
        self._delay: Optional[Timer] = None
        self._shutdown_by: Optional[str] = None

    def __repr__(self) -> str:
        return '<StreamsGroup %s %s epoch=%d, %d members>' % (
            self.group_id,
            self.state.value,
            self.epoch,
            len(self.members),
        )

    @property
    def state(self) -> StreamsGroupState:
        """Where it is."""
        if self.is_dead:
            return StreamsGroupState.DEAD
        if not self.members:
            return StreamsGroupState.EMPTY
        if self.configured is None or not self.configured.is_ready:
            return StreamsGroupState.NOT_READY
        if self.epoch > self.assignment_epoch:
            return StreamsGroupState.ASSIGNING
        if all(m.is_settled and m.epoch == self.epoch for m in self.members.values()):
            return StreamsGroupState.STABLE
        return StreamsGroupState.RECONCILING

    # ------------------------------------------------------------ members

    def find(
        self, request: StreamsGroupHeartbeatRequest, client_id: str, client_host: str
    ) -> Tuple[int, Optional[StreamsMember]]:
        """Return the member that sends a heartbeat, made if it joins, or an error."""
        member, epoch = self.members.get(request.member_id), request.member_epoch
        owner = self._instances.get(request.instance_id or '')
        if request.instance_id is not None and owner is None and epoch != JOIN_EPOCH:
            return UNKNOWN_MEMBER_ID, None
        if owner is not None and owner != request.member_id:
            if epoch != JOIN_EPOCH:
                return FENCED_INSTANCE_ID, None
            if self.members[owner].epoch != STATIC_LEAVE_EPOCH:
                return UNRELEASED_INSTANCE_ID, None
            return NONE, self._replace(self.members[owner], request, client_id, client_host)
        if member is not None:
            return self._epoch_error(member, request), member
        if epoch != JOIN_EPOCH:
            return UNKNOWN_MEMBER_ID, None
        if len(self.members) >= self._rules.max_size:
            return GROUP_MAX_SIZE_REACHED, None
        if not self._rules.budget.has_room(2 * MEMBER_BYTES + len(request.member_id)):
            return COORDINATOR_NOT_AVAILABLE, None
        return NONE, self._add(StreamsMember(request.member_id, client_id, client_host))

    def _add(self, member: StreamsMember) -> StreamsMember:
        rules = self._rules
        self.members[member.member_id] = member
        rules.budget.change(member.size)
        member.session = Deadline(rules.timers, rules.outbox, lambda: self.remove(member))
        member.revocation = Deadline(rules.timers, rules.outbox, lambda: self.remove(member))
        return member

    def _replace(
        self,
        old: StreamsMember,
        request: StreamsGroupHeartbeatRequest,
        client_id: str,
        client_host: str,
    ) -> StreamsMember:
        """Let a static member that left for a while come back under another id."""
        member = StreamsMember(request.member_id, client_id, client_host)
        member.take_over(old)
        for target in (self.active, self.standby):
            target[member.member_id] = target.pop(old.member_id, set())
        self._forget(old)
        return self._add(member)

    def _epoch_error(self, member: StreamsMember, request: StreamsGroupHeartbeatRequest) -> int:
        if request.member_epoch in (JOIN_EPOCH, member.epoch):
            return NONE
        # Its last answer may have been lost.
        if request.member_epoch == member.previous_epoch and request.member_epoch < member.epoch:
            active, standby = tasks_of(request.active_tasks), tasks_of(request.standby_tasks)
            if active is not None and active <= set(member.active):
                if standby is not None and standby <= member.standby:
                    return NONE
        return FENCED_MEMBER_EPOCH

    def leave(self, request: StreamsGroupHeartbeatRequest) -> int:
        """Let a member go for good, or for a while if static; return the error."""
        member = self.members.get(request.member_id)
        if request.instance_id is not None:
            owner = self._instances.get(request.instance_id)
            if owner is None:
                return UNKNOWN_MEMBER_ID
            if owner != request.member_id:
                return FENCED_INSTANCE_ID
        if member is None:
            return UNKNOWN_MEMBER_ID
        if request.shutdown_application:
            self._shutdown_by = member.member_id
        if request.member_epoch == STATIC_LEAVE_EPOCH:
            member.epoch = STATIC_LEAVE_EPOCH
            member.revoking.clear()
            if member.revocation is not None:
                member.revocation.cancel()
            self._keep_alive(member)
        else:
            self.remove(member)
        return NONE

    def remove(self, member: StreamsMember) -> None:
        """Forget a member: others get its tasks."""
        self._forget(member)
        self.active.pop(member.member_id, None)
        self.standby.pop(member.member_id, None)
        self.epoch += 1
        if not self.members:
            if self._rules.version >= (4, 4):
                self.assignment_epoch = self.epoch
            if self._delay is not None:
                self._delay.cancel()
                self._delay = None
            self._shutdown_by = None
            self.empty_since = self._rules.timers.clock.monotonic()
            self._on_empty(self.group_id)

    def _forget(self, member: StreamsMember) -> None:
        if self.members.get(member.member_id) is not member:
            return
        del self.members[member.member_id]
        if member.instance_id is not None:
            self._instances.pop(member.instance_id, None)
        for deadline in (member.session, member.revocation):
            if deadline is not None:
                deadline.cancel()
        self._rules.budget.change(-member.size)

    def _keep_alive(self, member: StreamsMember) -> None:
        if member.session is not None:
            member.session.set(self._setting('streams.session.timeout.ms') / 1000)

    def _setting(self, name: str) -> int:
        return self._rules.setting(self.group_id, name)

    # ------------------------------------------------------------ heartbeat

    def request_error(self, request: StreamsGroupHeartbeatRequest) -> int:
        """Return why a heartbeat is no use here: another topology, or tasks that are none."""
        topology = request.topology
        if topology is not None and self.topology is not None:
            if topology.epoch >= self.topology.epoch and topology != self.topology:
                return INVALID_REQUEST
        if self.configured is None or not self.configured.is_ready:
            return NONE
        counts = self.configured.tasks
        told = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
        known = all(
            0 <= index < counts.get(part, 0)
            for each in told
            for part, index in tasks_of(each) or ()
        )
        return NONE if known else INVALID_REQUEST

    def heartbeat(
        self, member: StreamsMember, request: StreamsGroupHeartbeatRequest
    ) -> Tuple[bool, List[Problem]]:
        """Take what a member says; return whether to tell it its tasks, and what is wrong.

        Raises InvalidTopology.
        """
        is_first = len(self.members) == 1 and member.epoch == 0
        configured = self._configured(request.topology)
        self._keep_alive(member)
        has_changed = self._update(member, request)
        if self._look() or has_changed:
            self.epoch += 1
            if is_first:
                self._wait_for_others()
        self.configured = configured
        problems = []
        if self.topology is not None and member.topology_epoch < self.topology.epoch:
            problems.append(Problem(STALE_TOPOLOGY, 'The topology of the member is an old one.'))
        delay = self._assign()
        if delay:
            problems.append(Problem(ASSIGNMENT_DELAYED, delay))
        before = set(member.active), set(member.standby)
        self._reconcile(member, tasks_of(request.active_tasks))
        has_other_tasks = before != (set(member.active), member.standby)
        if member.endpoint is not None and has_other_tasks and not is_first:
            self.endpoint_epoch += 1
        if configured.problem is not None:
            problems.append(configured.problem)
            self._rules.create(configured)
        if request.shutdown_application:
            self._shutdown_by = member.member_id
        if self._shutdown_by is not None:
            text = 'Member %s asked for the end of the application.' % self._shutdown_by
            problems.append(Problem(SHUTDOWN_APPLICATION, text))
        return has_other_tasks or request.member_epoch == JOIN_EPOCH, problems

    def _configured(self, topology: Optional[StreamsGroupHeartbeatTopology]) -> Configured:
        """Say what comes of the topology now; the first one that is told is that of the group."""
        known = topology if self.topology is None else self.topology
        assert known is not None  # who joins tells it
        counts = {name: len(topic.partitions) for name, topic in self._rules.topics.items()}
        configured = configure(known, counts)
        if self.topology is None:
            self.topology = known
            self._rules.budget.change(size_of(known))
        return configured

    def _update(self, member: StreamsMember, request: StreamsGroupHeartbeatRequest) -> bool:
        """Note what a member says of itself; return whether that is something new."""
        size, before = member.size, member.about
        if request.instance_id is not None:
            member.instance_id = request.instance_id
            self._instances[request.instance_id] = member.member_id
        if request.rack_id is not None:
            member.rack_id = request.rack_id
        if request.rebalance_timeout_ms != -1:
            member.rebalance_timeout_ms = request.rebalance_timeout_ms
        if request.topology is not None:
            member.topology_epoch = request.topology.epoch
        if request.process_id is not None:
            member.process_id = request.process_id
        if request.user_endpoint is not None:
            member.endpoint = request.user_endpoint
        if request.client_tags is not None:
            member.client_tags = request.client_tags
        if request.task_offsets is not None:
            member.task_offsets = request.task_offsets
        if request.task_end_offsets is not None:
            member.task_end_offsets = request.task_end_offsets
        self._rules.budget.change(member.size - size)
        return member.about != before

    def _look(self) -> bool:
        """Look at the topics of the topology; return whether they are others than before."""
        assert self.topology is not None
        names = [
            name
            for part in self.topology.subtopologies
            for name in (*sources_of(part), *(each.name for each in part.state_changelog_topics))
        ]
        found = {name: self._rules.topics.get(name) for name in names}
        seen = {
            name: (topic.topic_id, len(topic.partitions))
            for name, topic in found.items()
            if topic is not None
        }
        before, self._seen = self._seen, seen
        return seen != before

    # ------------------------------------------------------------ assignment

    def _wait_for_others(self) -> None:
        """Let others join before the first assignment."""
        delay_ms = self._setting('streams.initial.rebalance.delay.ms')
        if delay_ms > 0 and self._delay is None:
            self._delay = self._rules.timers.later(delay_ms / 1000, self._have_waited)

    def _have_waited(self) -> None:
        self._delay = None
        self._compute()

    def _assign(self) -> str:
        """Compute a new target if there is reason; return why not yet, '' if nothing is due."""
        if self._delay is not None:
            return 'The first assignment waits for other members.'
        if self.assignment_epoch >= self.epoch:
            return ''
        now = self._rules.timers.clock.monotonic()
        if self._assigned_at is not None and self._rules.version >= (4, 3):
            if now - self._assigned_at < self._setting('streams.assignment.interval.ms') / 1000:
                return 'The last assignment was made only just now.'
        self._compute()
        return ''

    def _compute(self) -> None:
        """Spread the tasks over the members, moving as few as possible."""
        self._assigned_at = self._rules.timers.clock.monotonic()
        self.assignment_epoch = self.epoch
        tasks = {} if self.configured is None else self.configured.tasks
        counts = {name.encode('utf-8'): count for name, count in tasks.items()}
        owned = {name: _as_partitions(self.active.get(name, set())) for name in self.members}
        found = uniform({name: set(counts) for name in self.members}, counts, owned)
        self.active = {
            name: {(part.decode('utf-8'), index) for part, index in has}
            for name, has in found.items()
        }
        self._compute_standby(tasks)

    def _compute_standby(self, tasks: Mapping[str, int]) -> None:
        """Give tasks that keep state to further processes, as many as there shall be."""
        assert self.topology is not None
        copies = self._setting('streams.num.standby.replicas')
        before, self.standby = self.standby, {name: set() for name in self.members}
        loads = {name: len(self.active[name]) for name in self.members}
        for part in sorted(stateful_parts(self.topology) & set(tasks)):
            for task in ((part, index) for index in range(tasks[part])):
                used = {
                    self.members[name].process_id
                    for name in self.members
                    if task in self.active[name]
                }
                for _ in range(copies):
                    able = [n for n, each in self.members.items() if each.process_id not in used]
                    if not able:
                        break
                    chosen = min(able, key=lambda n: (loads[n], task not in before.get(n, ()), n))
                    self.standby[chosen].add(task)
                    loads[chosen] += 1
                    used.add(self.members[chosen].process_id)

    def _reconcile(self, member: StreamsMember, owned: Optional[Set[Task]]) -> None:
        """Bring a member nearer to its target, as far as it and the others have given back."""
        if member.revoking:
            if owned is None or owned & member.revoking:
                return
            member.revoking.clear()
        target = self.active.get(member.member_id, set())
        standby = self.standby.get(member.member_id, set())
        surplus = set(member.active) - target
        for task in surplus:
            del member.active[task]
        # A member that has just joined runs nothing, whatever it had.
        if surplus and owned is not None:
            surplus &= owned
        if surplus and member.epoch > JOIN_EPOCH:
            member.revoking, member.is_settled = surplus, False
            member.standby = set(standby)
            if member.revocation is not None:
                member.revocation.set(member.rebalance_timeout_ms / 1000)
            return
        if member.revocation is not None:
            member.revocation.cancel()
        epoch = max(1, self.assignment_epoch)
        if member.epoch != epoch:
            member.previous_epoch = max(member.epoch, 0)
            member.epoch = epoch
        taken: Set[Task] = set()
        for other in self.members.values():
            if other is not member:
                taken |= other.revoking | set(other.active)
        for task in target - set(member.active) - taken:
            member.active[task] = member.epoch
        member.standby = set(standby)
        member.is_settled = set(member.active) == target

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
        # An earlier epoch will do for what the member had then already.
        for topic_id, index in partitions:
            got = [member.active.get((part, index)) for part in self._readers(topic_id)]
            if not any(each is not None and each <= epoch for each in got):
                return STALE_MEMBER_EPOCH
        return NONE

    def _readers(self, topic_id: bytes) -> List[str]:
        """Return the parts of the topology that read a topic."""
        parts = [] if self.topology is None else self.topology.subtopologies
        names = [name for name, (known, _) in self._seen.items() if known == topic_id]
        return [p.subtopology_id for p in parts if set(names) & set(sources_of(p))]

    def transactional_commit_error(self, epoch: int, member_id: str) -> int:
        """Return why offsets in a transaction are refused."""
        if epoch < 0 and (not self.members or not member_id):
            return NONE
        member = self.members.get(member_id)
        if member is None:
            return UNKNOWN_MEMBER_ID
        return NONE if epoch == member.epoch else ILLEGAL_GENERATION

    def fetch_error(self, epoch: int, member_id: Optional[str]) -> int:
        """Return why OffsetFetch is refused."""
        if member_id is None and epoch < 0:
            return NONE
        member = self.members.get(member_id or '')
        if member is None:
            return UNKNOWN_MEMBER_ID
        return NONE if epoch == member.epoch else STALE_MEMBER_EPOCH

    def is_subscribed(self, topic: str) -> bool:
        """Tell whether the program reads a topic."""
        parts = [] if self.topology is None else self.topology.subtopologies
        return bool(self.members) and any(topic in sources_of(part) for part in parts)

    def die(self) -> None:
        """End the group; nobody finds it any more."""
        for member in list(self.members.values()):
            self._forget(member)
        if self._delay is not None:
            self._delay.cancel()
        if self.topology is not None:
            self._rules.budget.change(-size_of(self.topology))
        self.is_dead = True


def tasks_of(told: Optional[List[TaskIds]]) -> Optional[Set[Task]]:
    """Return tasks as a member tells them, None if it says nothing."""
    if told is None:
        return None
    return {(each.subtopology_id, index) for each in told for index in each.partitions}


def _as_partitions(tasks: Set[Task]) -> Set[TopicPartition]:
    return {(part.encode('utf-8'), index) for part, index in tasks}
