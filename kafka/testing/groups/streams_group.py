"""A streams group: its topology and the assignment of tasks to members (KIP-1071).

Called by streams_groups.py, which checks heartbeats first. Membership and reconciliation are in
handover_group.py; streams_topology.py computes the tasks from the existing topics. Warm-up tasks
are never assigned.
"""

from __future__ import annotations

from typing import Callable, Dict, List, Mapping, Optional, Set, Tuple

from kafka.protocol.streams import (
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatTopology,
    TaskIds,
    TaskOffset,
)
from kafka.testing.errors import INVALID_REQUEST, NONE
from kafka.testing.groups.epoch_group import JOIN_EPOCH, EpochGroupState, EpochRules
from kafka.testing.groups.group_members import MEMBER_BYTES
from kafka.testing.groups.handover_group import HandoverGroup, HandoverMember
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
from kafka.testing.timers import Timer


class StreamsMember(HandoverMember[Task]):
    """A member with its metadata and tasks; active tasks are reconciled, standby tasks are not."""

    def __init__(self, member_id: str, client_id: str, client_host: str) -> None:
        super().__init__(member_id, client_id, client_host)
        self.process_id = ''
        self.topology_epoch = -1
        self.endpoint: Optional[Endpoint] = None
        self.client_tags: List[KeyValue] = []
        self.task_offsets: List[TaskOffset] = []
        self.task_end_offsets: List[TaskOffset] = []
        self.standby: Set[Task] = set()

    def __repr__(self) -> str:
        return '<StreamsMember %s epoch=%d, %d active, %d standby tasks>' % (
            self.member_id,
            self.epoch,
            len(self.assigned),
            len(self.standby),
        )

    @property
    def size(self) -> int:
        """The estimate of the bytes that the member takes."""
        names = (self.member_id, self.client_id, self.instance_id or '', self.process_id)
        tags = sum(len(each.key) + len(each.value) + 128 for each in self.client_tags)
        offsets = 128 * (len(self.task_offsets) + len(self.task_end_offsets))
        return MEMBER_BYTES + 2 * sum(map(len, names)) + tags + offsets

    @property
    def about(self) -> Tuple[object, ...]:
        """The values whose change causes a new assignment."""
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
        """Take over the state of a static member that left temporarily."""
        super().take_over(other)
        self.process_id, self.endpoint = other.process_id, other.endpoint
        self.topology_epoch, self.client_tags = other.topology_epoch, other.client_tags
        self.standby = other.standby


class StreamsGroup(HandoverGroup[StreamsMember, StreamsGroupHeartbeatRequest, Task]):
    """One streams group.

    Arguments: rules: what all groups of the type share; on_empty: called with the group id when
        the last member has left; create: creates the missing internal topics.
    """

    group_type = 'streams'
    assignor = 'sticky'
    member_type = StreamsMember

    def __init__(
        self,
        group_id: str,
        rules: EpochRules,
        on_empty: Callable[[str], None],
        create: Callable[[Configured], None],
    ) -> None:
        super().__init__(group_id, rules, on_empty)
        self.epoch = 1
        self.assignment_epoch = 1 if rules.version >= (4, 3) else 0
        self.topology: Optional[StreamsGroupHeartbeatTopology] = None
        self.configured: Optional[Configured] = None
        #: The target standby tasks by member id; ``target`` has the active ones.
        self.standby: Dict[str, Set[Task]] = {}
        self.endpoint_epoch = 0
        self._create = create
        self._delay: Optional[Timer] = None
        self._shutdown_by: Optional[str] = None

    def _state_of_members(self) -> EpochGroupState:
        if self.configured is None or not self.configured.is_ready:
            return EpochGroupState.NOT_READY
        return super()._state_of_members()

    # ------------------------------------------------------------ members

    def _replace(self, old: StreamsMember, member: StreamsMember) -> None:
        self.standby[member.member_id] = self.standby.pop(old.member_id, set())
        super()._replace(old, member)

    def _owns_its_own(self, member: StreamsMember, request: StreamsGroupHeartbeatRequest) -> bool:
        active, standby = tasks_of(request.active_tasks), tasks_of(request.standby_tasks)
        if active is None or standby is None:
            return False
        return active <= set(member.assigned) and standby <= member.standby

    def leave(self, request: StreamsGroupHeartbeatRequest) -> int:
        """Remove a member, or keep a static one until its session ends; return the error code."""
        error = super().leave(request)
        if not error and request.shutdown_application and self.members:
            self._shutdown_by = request.member_id
        return error

    def _ended(self) -> None:
        super()._ended()
        self._wait_no_longer()
        self._shutdown_by = None

    def _wait_no_longer(self) -> None:
        if self._delay is not None:
            self._delay.cancel()
            self._delay = None

    def _forget(self, member: StreamsMember) -> None:
        super()._forget(member)
        self.standby.pop(member.member_id, None)

    # ------------------------------------------------------------ heartbeat

    def request_error(self, request: StreamsGroupHeartbeatRequest) -> int:
        """Return the error code for another topology or for tasks that it does not have."""
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
        """Process a heartbeat; return whether the response carries tasks, and the statuses.

        Raises InvalidTopology if the topology of the group can never run.
        """
        is_first = len(self.members) == 1 and member.epoch == 0
        configured = self._configured(request.topology)
        self.keep_alive(member)
        has_changed = self._update(member, request)
        if self._look_at_topics() or has_changed:
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
        before = set(member.assigned), member.standby
        owned = tasks_of(request.active_tasks)
        if self._reconcile(member, owned, self.target.get(member.member_id, set())):
            member.standby = set(self.standby.get(member.member_id, set()))
        has_other_tasks = before != (set(member.assigned), member.standby)
        if member.endpoint is not None and has_other_tasks and not is_first:
            self.endpoint_epoch += 1
        if configured.problem is not None:
            problems.append(configured.problem)
            self._create(configured)
        if request.shutdown_application:
            self._shutdown_by = member.member_id
        if self._shutdown_by is not None:
            text = 'Member %s asked for the end of the application.' % self._shutdown_by
            problems.append(Problem(SHUTDOWN_APPLICATION, text))
        return has_other_tasks or request.member_epoch == JOIN_EPOCH, problems

    def _configured(self, topology: Optional[StreamsGroupHeartbeatTopology]) -> Configured:
        """Return the topology checked with the existing topics; the first one stays the group's."""
        known = topology if self.topology is None else self.topology
        assert known is not None  # a heartbeat that joins has a topology
        counts = {name: len(topic.partitions) for name, topic in self._rules.topics.items()}
        configured = configure(known, counts)
        if self.topology is None:
            self.topology = known
            self._rules.budget.change(size_of(known))
        return configured

    def _update(self, member: StreamsMember, request: StreamsGroupHeartbeatRequest) -> bool:
        """Take over the values of a heartbeat; return True if they cause a new assignment."""
        size, before = member.size, member.about
        if request.instance_id is not None:
            self._set_instance(member, request.instance_id)
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

    def _look_at_topics(self) -> bool:
        """Count the partitions of the topology's topics; return True if they have changed."""
        assert self.topology is not None
        names = [
            name
            for part in self.topology.subtopologies
            for name in (*sources_of(part), *(each.name for each in part.state_changelog_topics))
        ]
        return self._count(names)

    # ------------------------------------------------------------ assignment

    def _wait_for_others(self) -> None:
        """Delay the first assignment, so that other members can join."""
        delay_ms = self._setting('initial.rebalance.delay.ms')
        if delay_ms > 0 and self._delay is None:
            self._delay = self._rules.timers.later(delay_ms / 1000, self._have_waited)

    def _have_waited(self) -> None:
        self._delay = None
        self._compute()

    def _assign(self) -> str:
        """Compute a new target if it is due; return why it is delayed, '' if it is not."""
        if self._delay is not None:
            return 'The first assignment waits for other members.'
        if self.assignment_epoch >= self.epoch:
            return ''
        if self._has_just_assigned():
            return 'The last assignment was made only just now.'
        self._compute()
        return ''

    def _compute(self) -> None:
        """Distribute the tasks over the members, and move as few as possible."""
        self._assigned_at = self._rules.timers.clock.monotonic()
        self.assignment_epoch = self.epoch
        tasks = {} if self.configured is None else self.configured.tasks
        counts = {name.encode('utf-8'): count for name, count in tasks.items()}
        owned = {name: _as_partitions(self.target.get(name, set())) for name in self.members}
        found = uniform({name: set(counts) for name in self.members}, counts, owned)
        self.target = {
            name: {(part.decode('utf-8'), index) for part, index in has}
            for name, has in found.items()
        }
        self._compute_standby(tasks)

    def _compute_standby(self, tasks: Mapping[str, int]) -> None:
        """Assign standby tasks of stateful subtopologies to other processes."""
        assert self.topology is not None
        copies = self._setting('num.standby.replicas')
        before, self.standby = self.standby, {name: set() for name in self.members}
        loads = {name: len(self.target[name]) for name in self.members}
        for part in sorted(stateful_parts(self.topology) & set(tasks)):
            for task in ((part, index) for index in range(tasks[part])):
                used = {
                    self.members[name].process_id
                    for name in self.members
                    if task in self.target[name]
                }
                for _ in range(copies):
                    able = [n for n, each in self.members.items() if each.process_id not in used]
                    if not able:
                        break
                    chosen = min(able, key=lambda n: (loads[n], task not in before.get(n, ()), n))
                    self.standby[chosen].add(task)
                    loads[chosen] += 1
                    used.add(self.members[chosen].process_id)

    # ------------------------------------------------------------ commits

    def _has_had(self, member: StreamsMember, epoch: int, partition: TopicPartition) -> bool:
        topic_id, index = partition
        got = [member.assigned.get((part, index)) for part in self._readers(topic_id)]
        return any(each is not None and each <= epoch for each in got)

    def _readers(self, topic_id: bytes) -> List[str]:
        """Return the subtopologies that read a topic."""
        parts = [] if self.topology is None else self.topology.subtopologies
        names = [name for name, (known, _) in self._counts.items() if known == topic_id]
        return [p.subtopology_id for p in parts if set(names) & set(sources_of(p))]

    def is_subscribed(self, topic: str) -> bool:
        """Return True if the group has members and its topology reads a topic."""
        parts = [] if self.topology is None else self.topology.subtopologies
        return bool(self.members) and any(topic in sources_of(part) for part in parts)

    def die(self) -> None:
        """End the group: its members are removed and no request reaches it any more."""
        super().die()
        self._wait_no_longer()
        if self.topology is not None:
            self._rules.budget.change(-size_of(self.topology))


def tasks_of(told: Optional[List[TaskIds]]) -> Optional[Set[Task]]:
    """Return the tasks in a heartbeat, None if it reports none of the kind."""
    if told is None:
        return None
    return {(each.subtopology_id, index) for each in told for index in each.partitions}


def _as_partitions(tasks: Set[Task]) -> Set[TopicPartition]:
    return {(part.encode('utf-8'), index) for part, index in tasks}
