"""All groups of an embedded cluster: which request means which group, and when groups go away.

Owns the classic groups by their ids, what a coordinator checks before a group is asked, and that an
id means one group: classic, KIP-848 (consumer_groups.py), share (share_groups.py) or streams
(streams_groups.py). What one group does is in classic_group.py; requests and responses are in
handlers/groups.py. A group with members does not change its kind, as if
``group.consumer.migration.policy`` were ``disabled``.
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

#: What members of all groups may take together.
LIMIT_BYTES = 64 * 1024 * 1024

#: How often brokers look for groups that have nothing left (offsets.retention.check.interval.ms).
CHECK_SECONDS = 600.0


class Groups:
    """The groups of a cluster. Arguments: state: the cluster's."""

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
        """The longest session time-out that members may have."""
        version = self._state.release.version
        return 1800000 if version >= (2, 3) else 300000 if version >= (0, 10) else 30000

    # ------------------------------------------------------------ which there are

    def get(self, group_id: str) -> Optional[ClassicGroup]:
        """Return a group that has or had members, None if there is none."""
        self._expire(group_id)
        return self._groups.get(group_id)

    def all(self) -> List[ClassicGroup]:
        """Return those that have or had members."""
        for group_id in list(self._groups):
            self._expire(group_id)
        return list(self._groups.values())

    def newer(self) -> List[Union[ConsumerGroup, ShareGroup, StreamsGroup]]:
        """Return all groups of the newer protocols."""
        return [*self.consumers.all(), *self.shares.all(), *self.streams.all()]

    def offset_groups(self) -> List[str]:
        """Return ids of those that have offsets and never had members."""
        for group_id in self._state.offsets.groups:
            self._expire(group_id)
        if self._state.release.version < (0, 10, 1):  # such are no groups there
            return []
        return [name for name in self._state.offsets.groups if self._member_group(name) is None]

    def has_only_offsets(self, group_id: str) -> bool:
        """Tell whether a group is one of those."""
        self._expire(group_id)
        is_group = self._state.release.version >= (0, 10, 1)
        return is_group and self._state.offsets.has(group_id) and not self._member_group(group_id)

    def exists(self, group_id: str) -> bool:
        """Tell whether there is a group, be it only of offsets."""
        self._expire(group_id)
        return self._member_group(group_id) is not None or self.has_only_offsets(group_id)

    def with_members(self, group_id: str) -> Optional[AnyGroup]:
        """Return a group of any kind, None if it does not exist or has no members."""
        self._expire(group_id)
        group = self._member_group(group_id)
        return group if group is not None and group.members else None

    def _member_group(self, group_id: str) -> Optional[AnyGroup]:
        return self._groups.get(group_id) or self._committing(group_id) or self.shares.get(group_id)

    def _committing(self, group_id: str) -> Union[ConsumerGroup, StreamsGroup, None]:
        """Return a group of a newer protocol that commits offsets, None if it is none."""
        return self.consumers.get(group_id) or self.streams.get(group_id)

    # ------------------------------------------------------------ membership

    def join(self, call: JoinCall) -> None:
        """Take a JoinGroup."""
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
        # Its first member may be refused: then it has none.
        self._state.timers.later(CHECK_SECONDS, lambda: self._expire(group_id))
        return group

    def take_back(self, group_id: str) -> ClassicGroup:
        """Return a group that was written down, without its members yet."""
        return self._create(group_id)

    def sync(self, request: SyncGroupRequest, reply: Reply) -> None:
        """Take a SyncGroup."""
        group = self.get(request.group_id)
        error = self._name_error(request.group_id)
        if error or group is None:
            reply(SyncGroupResponse(error_code=error or UNKNOWN_MEMBER_ID, assignment=b''))
            return
        group.sync(request, reply)
        self.outbox.flush()

    def heartbeat(self, request: HeartbeatRequest) -> int:
        """Take a heartbeat; return the error."""
        error = self._name_error(request.group_id)
        if error:
            return error
        group = self.get(request.group_id)
        return UNKNOWN_MEMBER_ID if group is None else group.heartbeat(request)

    def _name_error(self, group_id: str) -> int:
        """Return what is wrong with the id of a group that one must have joined."""
        if group_id or self._state.release.version < (2, 0):
            return NONE
        return INVALID_GROUP_ID

    def leave_error(self, group_id: str) -> int:
        """Return why nobody can leave a group."""
        return self._name_error(group_id)

    def leave(self, group_id: str, member_id: str, instance_id: Optional[str]) -> int:
        """Let a member go; return the error."""
        group = self.get(group_id)
        if group is None:
            return UNKNOWN_MEMBER_ID
        error = group.leave(member_id, instance_id)
        self.outbox.flush()
        return error

    def delete(self, group_id: str) -> int:
        """Delete a group without members and its offsets; return the error."""
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
        """Take a KIP-848 heartbeat.

        Arguments: may_describe: whether who sends it may know of a topic.
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
        """Take the heartbeat of a member of a share group (KIP-932)."""
        if self.shares.get(request.group_id) is None and self.exists(request.group_id):
            text = 'Group %s is not a share group.' % request.group_id
            return share_refusal(GROUP_ID_NOT_FOUND, text)
        response = self.shares.heartbeat(request, client_id, client_host)
        self.outbox.flush()
        return response

    def altered_share_group(self, group_id: str) -> Optional[ShareGroup]:
        """Return the share group whose offsets are altered; made, unless another has its name."""
        group = self.shares.get(group_id)
        if group is None and not self.exists(group_id):
            group = self.shares.make(group_id)
        return group

    def streams_heartbeat(
        self, request: StreamsGroupHeartbeatRequest, client_id: str, client_host: str
    ) -> StreamsGroupHeartbeatResponse:
        """Take the heartbeat of a member of a streams group (KIP-1071)."""
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
        """Return why a commit is refused, 0 if it is not.

        Arguments: generation: or member epoch; version: of OffsetCommit; partitions: that it is
            about, for members whose epoch has changed meanwhile.
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
        """Return why TxnOffsetCommit is refused, 0 if it is not (KIP-447)."""
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
        """Return why OffsetFetch is refused to a member, 0 if it is not."""
        group = self._committing(group_id)
        return NONE if group is None else group.fetch_error(member_epoch, member_id)

    def check_offset_delete(self, group_id: str) -> int:
        """Return why no offsets of a group can be deleted, 0 if some can (KIP-496)."""
        if not self.exists(group_id) or self.shares.get(group_id) is not None:
            return GROUP_ID_NOT_FOUND
        group = self.with_members(group_id)
        is_other = group is not None and group.protocol_type not in ('consumer', 'streams')
        return NON_EMPTY_GROUP if is_other else NONE

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        """Tell whether members of a group consume a topic."""
        group = self.with_members(group_id)
        return not isinstance(group, (ShareGroup, type(None))) and group.is_subscribed(topic)

    # ------------------------------------------------------------

    def _refuse_classic(self, call: JoinCall) -> None:
        """Keep a classic member out of a KIP-848 group; brokers that let it in give it an id."""
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
        """Note that a group has no members: it goes when it has no offsets either."""
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
        """Forget what has become too old of a group, and the group when that was all."""
        clock, offsets = self._state.timers.clock, self._state.offsets
        group = self._member_group(group_id)
        if isinstance(group, ShareGroup):
            return  # they stay until they are deleted
        idle: Optional[int] = None
        if group is not None and self._state.release.version >= (2, 1):  # KIP-211
            if group.state.value != GroupState.EMPTY.value:
                return
            idle = clock.wall_ms() - int((clock.monotonic() - group.empty_since) * 1000)
        # Brokers look at intervals only.
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
