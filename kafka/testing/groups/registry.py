"""The registry of all groups of an embedded cluster.

Called by the handlers of group requests (handlers/groups.py). Looks up groups by id, checks what
does not depend on the group, and expires groups and offsets. A group id is that of one group:
classic (classic_group.py), KIP-848 (consumer_groups.py), share (share_groups.py) or streams
(streams_groups.py). A group with members does not change its type, as with
``group.consumer.migration.policy=disabled``.
"""

from __future__ import annotations

import base64
import uuid
from typing import TYPE_CHECKING, Callable, Dict, Iterable, List, Optional, Union

from kafka.protocol.group import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from kafka.protocol.share import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from kafka.protocol.streams import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from kafka.testing.errors import (
    COORDINATOR_NOT_AVAILABLE,
    GROUP_ID_NOT_FOUND,
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    INVALID_GROUP_ID,
    INVALID_SESSION_TIMEOUT,
    MEMBER_ID_REQUIRED,
    NON_EMPTY_GROUP,
    NONE,
    UNKNOWN_MEMBER_ID,
)
from kafka.testing.groups.classic_group import ClassicGroup
from kafka.testing.groups.consumer_group import ConsumerGroup
from kafka.testing.groups.consumer_groups import ConsumerGroups, consumer_refusal
from kafka.testing.groups.epoch_group import JOIN_EPOCH, EpochRules
from kafka.testing.groups.group_members import (
    Budget,
    JoinCall,
    Outbox,
    Reply,
    group_size,
    join_refusal,
)
from kafka.testing.groups.group_settings import group_config
from kafka.testing.groups.group_states import GroupRules, GroupState
from kafka.testing.groups.server_assignors import TopicPartition
from kafka.testing.groups.share_group import ShareGroup
from kafka.testing.groups.share_groups import ShareGroups, share_refusal
from kafka.testing.groups.streams_group import StreamsGroup
from kafka.testing.groups.streams_groups import StreamsGroups, streams_refusal

if TYPE_CHECKING:
    from kafka.testing.state import ClusterState

AnyGroup = Union[ClassicGroup, ConsumerGroup, ShareGroup, StreamsGroup]

#: The limit of the memory that the members of all groups take together.
LIMIT_BYTES = 64 * 1024 * 1024

#: The interval of the check for expired groups and offsets (offsets.retention.check.interval.ms).
CHECK_SECONDS = 600.0


class Groups:
    """The groups of a cluster. Arguments: state: the state of the cluster."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._started = state.timers.clock.monotonic()
        self._groups: Dict[str, ClassicGroup] = {}
        defaults = state.defaults
        self.outbox = Outbox()
        self.budget = Budget(LIMIT_BYTES)
        self._rules = GroupRules(
            version=state.release.version,
            timers=state.timers,
            outbox=self.outbox,
            budget=self.budget,
            new_id=lambda: str(uuid.UUID(bytes=state.new_uuid())),
            initial_delay_ms=defaults.group_initial_rebalance_delay_ms,
            max_size=defaults.group_max_size,
            max_metadata_bytes=defaults.message_max_bytes,
        )
        rules = EpochRules(
            version=state.release.version,
            timers=state.timers,
            outbox=self.outbox,
            budget=self.budget,
            topics=state.topics,
            max_size=defaults.group_max_size,
            setting=lambda group_id, name: int(group_config(state, group_id, name)),
        )
        self.consumers = ConsumerGroups(rules, self._newer_ended)
        self.shares = ShareGroups(state, rules)
        self.streams = StreamsGroups(state, rules, self._newer_ended)

    def __repr__(self) -> str:
        return '<Groups: %d>' % len(self._groups)

    @property
    def max_session_timeout_ms(self) -> int:
        """The longest session time-out that members may request."""
        version = self._state.release.version
        return 1800000 if version >= (2, 3) else 300000 if version >= (0, 10) else 30000

    # ------------------------------------------------------------ lookups

    def get(self, group_id: str) -> Optional[ClassicGroup]:
        """Return a classic group that has or had members, None if it does not exist."""
        self._expire(group_id)
        return self._groups.get(group_id)

    def all(self) -> List[ClassicGroup]:
        """Return the classic groups that have or had members."""
        for group_id in list(self._groups):
            self._expire(group_id)
        return list(self._groups.values())

    def newer(self) -> List[Union[ConsumerGroup, ShareGroup, StreamsGroup]]:
        """Return all consumer (KIP-848), share and streams groups."""
        return [*self.consumers.all(), *self.shares.all(), *self.streams.all()]

    def offset_groups(self) -> List[str]:
        """Return the ids of groups that have committed offsets and never had members."""
        for group_id in self._state.offsets.groups:
            self._expire(group_id)
        if self._state.release.version < (0, 10, 1):  # not listed as groups there
            return []
        return [name for name in self._state.offsets.groups if self._member_group(name) is None]

    def has_only_offsets(self, group_id: str) -> bool:
        """Return True if a group has committed offsets and never had members."""
        self._expire(group_id)
        is_group = self._state.release.version >= (0, 10, 1)
        return is_group and self._state.offsets.has(group_id) and not self._member_group(group_id)

    def exists(self, group_id: str) -> bool:
        """Return True if a group exists, with members or with offsets only."""
        self._expire(group_id)
        return self._member_group(group_id) is not None or self.has_only_offsets(group_id)

    def with_members(self, group_id: str) -> Optional[AnyGroup]:
        """Return a group of any type, None if it does not exist or has no members."""
        self._expire(group_id)
        group = self._member_group(group_id)
        return group if group is not None and group.members else None

    def _member_group(self, group_id: str) -> Optional[AnyGroup]:
        return self._groups.get(group_id) or self._committing(group_id) or self.shares.get(group_id)

    def _committing(self, group_id: str) -> Union[ConsumerGroup, StreamsGroup, None]:
        """Return a KIP-848 or streams group, None if the id is not that of one."""
        return self.consumers.get(group_id) or self.streams.get(group_id)

    # ------------------------------------------------------------ membership

    def join(self, call: JoinCall) -> None:
        """Process a JoinGroup."""
        request = call.request
        error = self._join_error(request.group_id, request.session_timeout_ms)
        group = self.get(request.group_id)
        other = self.consumers.get(request.group_id)
        if not error and other is not None and other.members:
            self._refuse_classic(call)
            return
        streams = self.streams.get(request.group_id)
        if not error and (self.shares.get(request.group_id) or (streams and streams.members)):
            error = INCONSISTENT_GROUP_PROTOCOL
        elif not error and group is None:
            if request.member_id:
                error = UNKNOWN_MEMBER_ID
            elif not self.budget.has_room(group_size(request.group_id)):
                error = COORDINATOR_NOT_AVAILABLE
            else:
                group = self._create(request.group_id)
        if error or group is None:
            generation = self._rules.no_generation
            call.reply(join_refusal(call.version, error, request.member_id, generation))
            return
        group.join(call)
        self.outbox.flush()

    def _create(self, group_id: str) -> ClassicGroup:
        self.consumers.forget(group_id)
        self.streams.forget(group_id)
        group = self._groups[group_id] = ClassicGroup(group_id, self._rules, self._ended)
        self.budget.change(group_size(group_id))
        # The first member may be refused: then the group has none and has to expire.
        self._state.timers.later(CHECK_SECONDS, lambda: self._expire(group_id))
        return group

    def take_back(self, group_id: str) -> ClassicGroup:
        """Create a group that was read from disk; the caller adds its members."""
        return self._create(group_id)

    def sync(self, request: SyncGroupRequest, reply: Reply) -> None:
        """Process a SyncGroup."""
        group = self.get(request.group_id)
        error = self._name_error(request.group_id)
        if error or group is None:
            reply(SyncGroupResponse(error_code=error or UNKNOWN_MEMBER_ID, assignment=b''))
            return
        group.sync(request, reply)
        self.outbox.flush()

    def heartbeat(self, request: HeartbeatRequest) -> int:
        """Process a Heartbeat; return the error code."""
        error = self._name_error(request.group_id)
        if error:
            return error
        group = self.get(request.group_id)
        return UNKNOWN_MEMBER_ID if group is None else group.heartbeat(request)

    def _name_error(self, group_id: str) -> int:
        """Return the error code for a group id in requests of members."""
        if group_id or self._state.release.version < (2, 0):
            return NONE
        return INVALID_GROUP_ID

    def leave_error(self, group_id: str) -> int:
        """Return the error code for the group id of a LeaveGroup."""
        return self._name_error(group_id)

    def leave(self, group_id: str, member_id: str, instance_id: Optional[str]) -> int:
        """Remove a member; return the error code."""
        group = self.get(group_id)
        if group is None:
            return UNKNOWN_MEMBER_ID
        error = group.leave(member_id, instance_id)
        self.outbox.flush()
        return error

    def delete(self, group_id: str) -> int:
        """Delete a group without members and its offsets; return the error code."""
        if not group_id and self._state.release.version < (2, 0):
            return INVALID_GROUP_ID
        if not self.exists(group_id):
            return GROUP_ID_NOT_FOUND
        group = self._groups.get(group_id)
        if self.with_members(group_id) or (group and group.state is not GroupState.EMPTY):
            return NON_EMPTY_GROUP
        if group is not None:
            self._forget(group)
        self.consumers.forget(group_id)
        self.shares.forget(group_id)
        self.streams.forget(group_id)
        self._state.offsets.delete_group(group_id)
        return NONE

    def consumer_heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        version: int,
        client_id: str,
        client_host: str,
        may_describe: Callable[[str], bool],
    ) -> ConsumerGroupHeartbeatResponse:
        """Process a ConsumerGroupHeartbeat (KIP-848).

        Arguments: may_describe: returns True if the sender may describe a topic.
        """
        if self.shares.get(request.group_id) or self.streams.get(request.group_id):
            text = 'Group %s is no consumer group.' % request.group_id
            return consumer_refusal(GROUP_ID_NOT_FOUND, text)
        classic = self.get(request.group_id)
        if classic is not None:
            if classic.state is not GroupState.EMPTY or request.member_epoch != JOIN_EPOCH:
                text = 'Group %s is a classic group.' % request.group_id
                return consumer_refusal(GROUP_ID_NOT_FOUND, text)
            self._forget(classic)
        if not request.member_id and version == 0 and request.member_epoch == JOIN_EPOCH:
            made = base64.urlsafe_b64encode(self._state.new_uuid())
            request.member_id = made.decode('ascii').rstrip('=')
        return self.consumers.heartbeat(request, version, client_id, client_host, may_describe)

    def share_heartbeat(
        self, request: ShareGroupHeartbeatRequest, client_id: str, client_host: str
    ) -> ShareGroupHeartbeatResponse:
        """Process a ShareGroupHeartbeat (KIP-932)."""
        if self.shares.get(request.group_id) is None and self.exists(request.group_id):
            text = 'Group %s is not a share group.' % request.group_id
            return share_refusal(GROUP_ID_NOT_FOUND, text)
        response = self.shares.heartbeat(request, client_id, client_host)
        self.outbox.flush()
        return response

    def altered_share_group(self, group_id: str) -> Optional[ShareGroup]:
        """Return the share group whose offsets are altered, created if the id is not in use."""
        group = self.shares.get(group_id)
        if group is None and not self.exists(group_id):
            group = self.shares.make(group_id)
        return group

    def streams_heartbeat(
        self, request: StreamsGroupHeartbeatRequest, client_id: str, client_host: str
    ) -> StreamsGroupHeartbeatResponse:
        """Process a StreamsGroupHeartbeat (KIP-1071)."""
        group = self.get(request.group_id) or self._member_group(request.group_id)
        if group is not None and not isinstance(group, StreamsGroup):
            is_over = isinstance(group, ClassicGroup) and group.state is GroupState.EMPTY
            if not is_over or request.member_epoch != JOIN_EPOCH:
                text = 'Group %s is not a streams group.' % request.group_id
                return streams_refusal(GROUP_ID_NOT_FOUND, text)
            assert isinstance(group, ClassicGroup)
            self._forget(group)
        response = self.streams.heartbeat(request, client_id, client_host)
        self.outbox.flush()
        return response

    # ------------------------------------------------------------ commits

    def check_commit(
        self,
        group_id: str,
        generation: int,
        member_id: str,
        instance_id: Optional[str],
        version: int = 8,
        partitions: Iterable[TopicPartition] = (),
    ) -> int:
        """Return the error code of an OffsetCommit, 0 if it is allowed.

        Arguments: generation: generation or member epoch; version: version of OffsetCommit;
            partitions: those of the request, for commits with an earlier epoch (KIP-1251).
        """
        if self.shares.get(group_id) is not None:
            return GROUP_ID_NOT_FOUND
        newer = self._committing(group_id)
        if newer is not None:
            return newer.commit_error(generation, member_id, version, list(partitions))
        group = self.get(group_id)
        if group is not None:
            return group.commit_error(generation, member_id, instance_id)
        if generation < 0 or self._state.release.version < (0, 9):
            return NONE
        if self.has_only_offsets(group_id):
            return UNKNOWN_MEMBER_ID
        if version >= 9 and self._state.release.version >= (4, 0):
            return GROUP_ID_NOT_FOUND
        return ILLEGAL_GENERATION

    def check_transactional_commit(
        self, group_id: str, generation: int, member_id: str, instance_id: Optional[str]
    ) -> int:
        """Return the error code of a TxnOffsetCommit, 0 if it is allowed (KIP-447)."""
        if self.shares.get(group_id) is not None:
            return GROUP_ID_NOT_FOUND
        newer = self._committing(group_id)
        if newer is not None:
            return newer.transactional_commit_error(generation, member_id)
        group = self.get(group_id)
        if group is not None:
            return group.transactional_commit_error(generation, member_id, instance_id)
        return NONE if generation < 0 else UNKNOWN_MEMBER_ID

    def check_fetch(self, group_id: str, member_id: Optional[str], member_epoch: int) -> int:
        """Return the error code of the OffsetFetch of a member, 0 if it is allowed."""
        group = self._committing(group_id)
        return NONE if group is None else group.fetch_error(member_epoch, member_id)

    def check_offset_delete(self, group_id: str) -> int:
        """Return the error code of an OffsetDelete, 0 if it is allowed (KIP-496)."""
        if not self.exists(group_id) or self.shares.get(group_id) is not None:
            return GROUP_ID_NOT_FOUND
        group = self.with_members(group_id)
        is_other = group is not None and group.protocol_type not in ('consumer', 'streams')
        return NON_EMPTY_GROUP if is_other else NONE

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        """Return True if members of a group subscribe to a topic."""
        group = self.with_members(group_id)
        return not isinstance(group, (ShareGroup, type(None))) and group.is_subscribed(topic)

    # ------------------------------------------------------------

    def _refuse_classic(self, call: JoinCall) -> None:
        """Refuse a classic member that joins a KIP-848 group; its first JoinGroup gets an id."""
        request, error = call.request, INCONSISTENT_GROUP_PROTOCOL
        member_id = request.member_id
        if not member_id and call.version >= 4 and request.protocol_type == 'consumer':
            error = MEMBER_ID_REQUIRED
            member_id = self._rules.new_id()
        call.reply(join_refusal(call.version, error, member_id, -1))

    def _join_error(self, group_id: str, session_timeout_ms: int) -> int:
        if not group_id:
            return INVALID_GROUP_ID
        shortest = self._state.defaults.group_min_session_timeout_ms
        if not shortest <= session_timeout_ms <= self.max_session_timeout_ms:
            return INVALID_SESSION_TIMEOUT
        return NONE

    def _ended(self, group: ClassicGroup) -> None:
        """Schedule the check that removes a group without members and offsets."""
        if self._state.release.version < (0, 10, 1):
            self._forget(group)
        else:
            self._state.timers.later(CHECK_SECONDS, lambda: self._expire(group.group_id))

    def _newer_ended(self, group_id: str) -> None:
        self._state.timers.later(CHECK_SECONDS, lambda: self._expire(group_id))

    def _forget(self, group: ClassicGroup) -> None:
        if self._groups.get(group.group_id) is group:
            del self._groups[group.group_id]
            self.budget.change(-group_size(group.group_id))
        group.die()

    def _expire(self, group_id: str) -> None:
        """Remove expired offsets of a group, and the group if it has no offsets and no members."""
        clock, offsets = self._state.timers.clock, self._state.offsets
        group = self._member_group(group_id)
        if isinstance(group, ShareGroup):
            return  # share groups exist until they are deleted
        idle: Optional[int] = None
        if group is not None and self._state.release.version >= (2, 1):  # KIP-211
            if group.state.value != GroupState.EMPTY.value:
                return
            idle = clock.wall_ms() - int((clock.monotonic() - group.empty_since) * 1000)
        # Brokers check at intervals only.
        late = (clock.monotonic() - self._started) % CHECK_SECONDS
        offsets.expire(group_id, clock.wall_ms() - int(late * 1000), idle)
        if group is None or group.state.value != GroupState.EMPTY.value:
            return
        is_over = clock.monotonic() - group.empty_since >= CHECK_SECONDS
        if is_over and not offsets.has(group_id):
            if not isinstance(group, ClassicGroup):
                self.consumers.forget(group_id)
                self.streams.forget(group_id)
            elif not group.has_pending:
                self._forget(group)
