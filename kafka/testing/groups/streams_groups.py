"""The streams groups of an embedded cluster: which there are, and what may be asked of them.

Owns the groups by their ids, the checks of a heartbeat that need no group (KIP-1071), and the
creation of internal topics. What one group does is in streams_group.py; that an id means one group
of any kind is known in groups.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from kafka.protocol.streams import (
    EndpointToPartitions,
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
    TopicPartition,
)
from kafka.testing.errors import (
    COORDINATOR_NOT_AVAILABLE,
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    GROUP_ID_NOT_FOUND,
    GROUP_MAX_SIZE_REACHED,
    INVALID_REQUEST,
    STREAMS_INVALID_TOPOLOGY,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_SERVER_ERROR,
    UNRELEASED_INSTANCE_ID,
)
from kafka.testing.groups.group_members import Budget, Outbox, group_size
from kafka.testing.groups.group_settings import group_config
from kafka.testing.groups.streams_group import (
    JOIN_EPOCH,
    STATIC_LEAVE_EPOCH,
    StreamsGroup,
    StreamsGroupRules,
    StreamsMember,
)
from kafka.testing.groups.streams_topology import (
    BrokenTopology,
    Configured,
    InvalidTopology,
    Problem,
    Task,
    size_of,
    sources_of,
)

if TYPE_CHECKING:
    from kafka.testing.state import ClusterState

#: What later releases tell members of their tasks' offsets.
TASK_OFFSET_INTERVAL_MS = 60000
ACCEPTABLE_RECOVERY_LAG = 10000

_TEXTS = {
    UNKNOWN_MEMBER_ID: 'Member %s is not in the group.',
    FENCED_MEMBER_EPOCH: 'Member %s has another epoch; it must give up its tasks and rejoin.',
    FENCED_INSTANCE_ID: 'The instance of member %s belongs to another member.',
    UNRELEASED_INSTANCE_ID: 'The instance of member %s is in use by another member.',
    GROUP_MAX_SIZE_REACHED: 'There is no room for member %s: the group is full.',
    COORDINATOR_NOT_AVAILABLE: 'There is no memory for member %s.',
    INVALID_REQUEST: 'The topology or the tasks of member %s are not those of the group.',
}


class StreamsRefusal(NamedTuple):
    """Why a heartbeat is not taken."""

    error: int
    text: Optional[str]

    @property
    def response(self) -> StreamsGroupHeartbeatResponse:
        """The answer that says so."""
        return StreamsGroupHeartbeatResponse(
            throttle_time_ms=0,
            error_code=self.error,
            error_message=self.text,
            member_id='',
            member_epoch=0,
            heartbeat_interval_ms=0,
            task_offset_interval_ms=0,
            status=[],
            endpoint_information_epoch=0,
        )


class StreamsGroups:
    """The streams groups of a cluster.

    Arguments: state: the cluster's; on_empty: is told the id of one that has no members.
    """

    def __init__(
        self, state: ClusterState, outbox: Outbox, budget: Budget, on_empty: Callable[[str], None]
    ) -> None:
        self._state = state
        self._on_empty = on_empty
        self._groups: Dict[str, StreamsGroup] = {}
        self.rules = StreamsGroupRules(
            version=state.release.version,
            timers=state.timers,
            outbox=outbox,
            budget=budget,
            topics=state.topics,
            max_size=state.defaults.group_max_size,
            setting=lambda group_id, name: int(group_config(state, group_id, name)),
            create=self._create,
        )

    def __repr__(self) -> str:
        return '<StreamsGroups: %d>' % len(self._groups)

    def get(self, group_id: str) -> Optional[StreamsGroup]:
        """Return a group, None if there is none of this kind."""
        return self._groups.get(group_id)

    def all(self) -> List[StreamsGroup]:
        """Return all."""
        return list(self._groups.values())

    def forget(self, group_id: str) -> None:
        """Forget a group, if there is one."""
        group = self._groups.pop(group_id, None)
        if group is not None:
            self.rules.budget.change(-group_size(group_id))
            group.die()

    def _create(self, configured: Configured) -> None:
        """Create the internal topics that are missing."""
        for topic in configured.missing:
            if topic.name not in self._state.topics and self._state.alive:
                copies = min(max(0, topic.replication_factor), len(self._state.alive)) or None
                made = self._state.create_topic(topic.name, max(1, topic.partitions), copies)
                made.configs.update({each.key: each.value for each in topic.topic_configs})

    # ------------------------------------------------------------ heartbeat

    def heartbeat(
        self, request: StreamsGroupHeartbeatRequest, client_id: str, client_host: str
    ) -> StreamsGroupHeartbeatResponse:
        """Take the heartbeat of a member, new or known, or let it leave."""
        refusal = _refusal(request, self.rules.version)
        if refusal is not None:
            return refusal.response
        group = self._groups.get(request.group_id)
        if group is None and request.member_epoch != JOIN_EPOCH:
            text = 'There is no streams group %s.' % request.group_id
            return StreamsRefusal(GROUP_ID_NOT_FOUND, text).response
        if group is None:
            if not self.rules.budget.has_room(group_size(request.group_id)):
                return _refused(COORDINATOR_NOT_AVAILABLE, request)
            group = StreamsGroup(request.group_id, self.rules, self._on_empty)
            self._groups[request.group_id] = group
            self.rules.budget.change(group_size(request.group_id))
        if request.member_epoch < JOIN_EPOCH:
            error = group.leave(request)
            return _refused(error, request) if error else _left(request)
        response = self._taken(group, request, client_id, client_host)
        if response.error_code and group.topology is None:
            self.forget(request.group_id)
        return response

    def _taken(
        self,
        group: StreamsGroup,
        request: StreamsGroupHeartbeatRequest,
        client_id: str,
        client_host: str,
    ) -> StreamsGroupHeartbeatResponse:
        size = 0 if request.topology is None else size_of(request.topology)
        if not self.rules.budget.has_room(size):
            return _refused(COORDINATOR_NOT_AVAILABLE, request)
        error = group.request_error(request)
        if error:
            return _refused(error, request)
        is_known = request.member_id in group.members
        error, member = group.find(request, client_id, client_host)
        if error or member is None:
            return _refused(error, request)
        try:
            tells_tasks, problems = group.heartbeat(member, request)
        except InvalidTopology as invalid:
            if not is_known:
                group.remove(member)
            if isinstance(invalid, BrokenTopology):
                return StreamsRefusal(UNKNOWN_SERVER_ERROR, None).response
            return StreamsRefusal(STREAMS_INVALID_TOPOLOGY, str(invalid)).response
        return self._answer(group, member, request, tells_tasks, problems)

    def _answer(
        self,
        group: StreamsGroup,
        member: StreamsMember,
        request: StreamsGroupHeartbeatRequest,
        tells_tasks: bool,
        problems: List[Problem],
    ) -> StreamsGroupHeartbeatResponse:
        is_newer = self.rules.version >= (4, 4)
        response = StreamsGroupHeartbeatResponse(
            throttle_time_ms=0,
            error_code=0,
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self.rules.setting(
                request.group_id, 'streams.heartbeat.interval.ms'
            ),
            task_offset_interval_ms=TASK_OFFSET_INTERVAL_MS if is_newer else 0,
            status=[Status(status_code=each.status, status_detail=each.text) for each in problems],
            endpoint_information_epoch=group.endpoint_epoch,
        )
        if is_newer:
            response.acceptable_recovery_lag = ACCEPTABLE_RECOVERY_LAG
        if tells_tasks:
            response.active_tasks = by_part(set(member.active))
            response.standby_tasks = by_part(member.standby)
            response.warmup_tasks = []
        tells_anew = request.endpoint_information_epoch != group.endpoint_epoch
        if tells_anew or (tells_tasks and member.endpoint is not None):
            response.partitions_by_user_endpoint = _endpoints(group)
        return response


def by_part(tasks: Set[Task]) -> List[TaskIds]:
    """Return tasks as messages have them, in order."""
    parts: Dict[str, List[int]] = {}
    for part, index in sorted(tasks):
        parts.setdefault(part, []).append(index)
    return [TaskIds(subtopology_id=part, partitions=each) for part, each in parts.items()]


def _endpoints(group: StreamsGroup) -> List[EndpointToPartitions]:
    """Return the partitions that members with an endpoint read."""
    return [
        EndpointToPartitions(
            user_endpoint=member.endpoint,
            active_partitions=_partitions(group, set(member.active)),
            standby_partitions=_partitions(group, member.standby),
        )
        for member in group.members.values()
        if member.endpoint is not None
    ]


def _partitions(group: StreamsGroup, tasks: Set[Task]) -> List[TopicPartition]:
    if group.topology is None or group.configured is None:
        return []
    found: Dict[str, List[int]] = {}
    topics = {part.subtopology_id: sources_of(part) for part in group.topology.subtopologies}
    for part, index in sorted(tasks):
        for name in topics.get(part, ()):
            if index < group.configured.topics.get(name, 0):
                found.setdefault(name, []).append(index)
    return [TopicPartition(topic=name, partitions=each) for name, each in sorted(found.items())]


def _refused(error: int, request: StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatResponse:
    return StreamsRefusal(error, _TEXTS[error] % request.member_id).response


def _left(request: StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatResponse:
    response = StreamsRefusal(0, None).response
    response.member_id, response.member_epoch = request.member_id, request.member_epoch
    return response


# ------------------------------------------------------------ what makes no sense


def _refusal(
    request: StreamsGroupHeartbeatRequest, version: Tuple[int, ...]
) -> Optional[StreamsRefusal]:
    """Return why a heartbeat cannot be meant, None if it can."""
    text = _empty_name(request) or _join_text(request) or _task_text(request)
    if text is None and request.topology is not None:
        for part in request.topology.subtopologies:
            for topic in part.state_changelog_topics:
                if topic.partitions:
                    text = 'Changelog topic %s has as many partitions as tasks.' % topic.name
                    return StreamsRefusal(STREAMS_INVALID_TOPOLOGY, text)
    text = text or _unsupported(request, version)
    return None if text is None else StreamsRefusal(INVALID_REQUEST, text)


def _empty_name(request: StreamsGroupHeartbeatRequest) -> Optional[str]:
    names = {
        'member id': request.member_id,
        'group id': request.group_id,
        'instance id': request.instance_id,
        'rack id': request.rack_id,
    }
    return next(('The %s is empty.' % what for what, name in names.items() if name == ''), None)


def _join_text(request: StreamsGroupHeartbeatRequest) -> Optional[str]:
    epoch = request.member_epoch
    if epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        return 'Only members with an instance id leave for a while.'
    if epoch < STATIC_LEAVE_EPOCH:
        return 'There is no member epoch %d.' % epoch
    if epoch != JOIN_EPOCH:
        return None if request.topology is None else 'Only who joins tells a topology.'
    if request.rebalance_timeout_ms == -1:
        return 'Who joins must tell its rebalance time-out.'
    told = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if any(each is None or each for each in told):
        return 'Who joins runs no tasks and must say so.'
    return 'Who joins must tell a topology.' if request.topology is None else None


def _task_text(request: StreamsGroupHeartbeatRequest) -> Optional[str]:
    told = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if any(each is not None for each in told) and any(each is None for each in told):
        return 'Who tells tasks of one kind must tell those of all.'
    return None


def _unsupported(request: StreamsGroupHeartbeatRequest, version: Tuple[int, ...]) -> Optional[str]:
    """Return what the protocol has and the release has not."""
    if version < (4, 4):
        if request.instance_id is not None:
            return 'Static membership is not supported yet.'
        if request.task_offsets is not None or request.task_end_offsets is not None:
            return 'Offsets of tasks are not supported yet.'
        if request.warmup_tasks:
            return 'Warm-up tasks are not supported yet.'
    parts = [] if request.topology is None else request.topology.subtopologies
    if any(part.source_topic_regex for part in parts):
        return 'Regular expressions for source topics are not supported yet.'
    return None
