"""The streams groups of an embedded cluster, the checks of their heartbeats, and internal topics.

Called by registry.py (KIP-1071). One group is in streams_group.py, the base of this class in
epoch_groups.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Dict, List, Optional, Set, Tuple

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
    FENCED_MEMBER_EPOCH,
    GROUP_ID_NOT_FOUND,
    INVALID_REQUEST,
    STREAMS_INVALID_TOPOLOGY,
    UNKNOWN_SERVER_ERROR,
)
from kafka.testing.groups.epoch_group import JOIN_EPOCH, EpochRules
from kafka.testing.groups.epoch_groups import MEMBER_TEXTS, EpochGroups, epoch_text, numbers_by_name
from kafka.testing.groups.streams_group import StreamsGroup, StreamsMember
from kafka.testing.groups.streams_topology import (
    BrokenTopology,
    Configured,
    InvalidTopology,
    Problem,
    Task,
    size_of,
    sources_of,
)
from kafka.testing.kept_bytes import settings_bytes

if TYPE_CHECKING:
    from kafka.testing.state import ClusterState

#: Values in heartbeat responses of later releases about the offsets of tasks.
TASK_OFFSET_INTERVAL_MS = 60000
ACCEPTABLE_RECOVERY_LAG = 10000

_TEXTS = {
    **MEMBER_TEXTS,
    FENCED_MEMBER_EPOCH: 'Member %s has another epoch; it must give up its tasks and rejoin.',
    INVALID_REQUEST: 'The topology or the tasks of member %s are not those of the group.',
}


class StreamsGroups(EpochGroups[StreamsGroup]):
    """The streams groups of a cluster.

    Arguments: state: the state of the cluster; rules: what groups of all types share; on_empty:
        called with the id of a group whose last member has left.
    """

    group_type = StreamsGroup.group_type

    def __init__(
        self, state: ClusterState, rules: EpochRules, on_empty: Callable[[str], None]
    ) -> None:
        super().__init__(rules)
        self._state = state
        self._on_empty = on_empty

    def _new_group(self, group_id: str) -> StreamsGroup:
        return StreamsGroup(group_id, self.rules, self._on_empty, self._create_topics)

    def _create_topics(self, configured: Configured) -> None:
        """Create the missing internal topics."""
        for topic in configured.missing:
            if topic.name not in self._state.topics and self._state.alive:
                copies = min(max(0, topic.replication_factor), len(self._state.alive)) or None
                values = {each.key: each.value for each in topic.topic_configs}
                size = settings_bytes(topic.name, values)
                if not self._state.kept.has_room(0, size):
                    return  # the group stays not ready
                made = self._state.create_topic(topic.name, max(1, topic.partitions), copies)
                made.configs.update(values)
                self._state.kept.change(0, size)

    # ------------------------------------------------------------ heartbeat

    def heartbeat(
        self, request: StreamsGroupHeartbeatRequest, client_id: str, client_host: str
    ) -> StreamsGroupHeartbeatResponse:
        """Process a heartbeat: of a new member, of a known one, or of one that leaves."""
        refusal = _refusal(request, self.rules.version)
        if refusal is not None:
            return refusal
        group = self._groups.get(request.group_id)
        if group is None and request.member_epoch != JOIN_EPOCH:
            text = 'There is no streams group %s.' % request.group_id
            return streams_refusal(GROUP_ID_NOT_FOUND, text)
        if group is None:
            group = self.make(request.group_id)
        if group is None:
            return _refused(COORDINATOR_NOT_AVAILABLE, request)
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
                return streams_refusal(UNKNOWN_SERVER_ERROR, None)
            return streams_refusal(STREAMS_INVALID_TOPOLOGY, str(invalid))
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
            heartbeat_interval_ms=group.heartbeat_interval_ms,
            task_offset_interval_ms=TASK_OFFSET_INTERVAL_MS if is_newer else 0,
            status=[Status(status_code=each.status, status_detail=each.text) for each in problems],
            endpoint_information_epoch=group.endpoint_epoch,
        )
        if is_newer:
            response.acceptable_recovery_lag = ACCEPTABLE_RECOVERY_LAG
        if tells_tasks:
            response.active_tasks = by_part(set(member.assigned))
            response.standby_tasks = by_part(member.standby)
            response.warmup_tasks = []
        tells_anew = request.endpoint_information_epoch != group.endpoint_epoch
        if tells_anew or (tells_tasks and member.endpoint is not None):
            response.partitions_by_user_endpoint = _endpoints(group)
        return response


def by_part(tasks: Set[Task]) -> List[TaskIds]:
    """Return tasks grouped by subtopology, sorted."""
    return [
        TaskIds(subtopology_id=part, partitions=indexes)
        for part, indexes in numbers_by_name(tasks).items()
    ]


def _endpoints(group: StreamsGroup) -> List[EndpointToPartitions]:
    """Return the partitions that members with an endpoint read."""
    return [
        EndpointToPartitions(
            user_endpoint=member.endpoint,
            active_partitions=_partitions(group, set(member.assigned)),
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


def streams_refusal(error: int, text: Optional[str]) -> StreamsGroupHeartbeatResponse:
    """Return the response to a heartbeat that is refused."""
    return StreamsGroupHeartbeatResponse(
        throttle_time_ms=0,
        error_code=error,
        error_message=text,
        member_id='',
        member_epoch=0,
        heartbeat_interval_ms=0,
        task_offset_interval_ms=0,
        status=[],
        endpoint_information_epoch=0,
    )


def _refused(error: int, request: StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatResponse:
    return streams_refusal(error, _TEXTS[error] % request.member_id)


def _left(request: StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatResponse:
    response = streams_refusal(0, None)
    response.member_id, response.member_epoch = request.member_id, request.member_epoch
    return response


# ------------------------------------------------------------ invalid requests


def _refusal(
    request: StreamsGroupHeartbeatRequest, version: Tuple[int, ...]
) -> Optional[StreamsGroupHeartbeatResponse]:
    """Return the response to an invalid heartbeat, None if it is valid."""
    wrong_epoch = epoch_text(request.member_epoch, request.instance_id)
    text = _empty_name(request) or wrong_epoch or _join_text(request) or _task_text(request)
    if text is None and request.topology is not None:
        for part in request.topology.subtopologies:
            for topic in part.state_changelog_topics:
                if topic.partitions:
                    text = 'Changelog topic %s has as many partitions as tasks.' % topic.name
                    return streams_refusal(STREAMS_INVALID_TOPOLOGY, text)
    text = text or _unsupported(request, version)
    return None if text is None else streams_refusal(INVALID_REQUEST, text)


def _empty_name(request: StreamsGroupHeartbeatRequest) -> Optional[str]:
    names = {
        'member id': request.member_id,
        'group id': request.group_id,
        'instance id': request.instance_id,
        'rack id': request.rack_id,
    }
    return next(('The %s is empty.' % what for what, name in names.items() if name == ''), None)


def _join_text(request: StreamsGroupHeartbeatRequest) -> Optional[str]:
    if request.member_epoch != JOIN_EPOCH:
        return None if request.topology is None else 'Only a member that joins gives a topology.'
    if request.rebalance_timeout_ms == -1:
        return 'A member that joins must give its rebalance time-out.'
    told = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if any(each is None or each for each in told):
        return 'A member that joins runs no tasks: expected empty lists of them.'
    return 'A member that joins must give a topology.' if request.topology is None else None


def _task_text(request: StreamsGroupHeartbeatRequest) -> Optional[str]:
    told = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if any(each is not None for each in told) and any(each is None for each in told):
        return 'A member that gives tasks of one kind must give those of all.'
    return None


def _unsupported(request: StreamsGroupHeartbeatRequest, version: Tuple[int, ...]) -> Optional[str]:
    """Return why a release does not support what a heartbeat requests, None if it does."""
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
