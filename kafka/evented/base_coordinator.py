"""BaseCoordinator: membership in a group over the evented client (1.x).

Implements what any type of group needs: finding the coordinator, joining, heartbeats, leaving.
kafka.evented.consumer_coordinator adds the protocol of consumer groups.

For programs that drive kafka.evented.client.KafkaClient themselves; KafkaConsumer uses
coordinator/classic/coordinator.py instead, which runs on an event loop. All work is done in calls
of this object and in ``poll()`` of the client, which also sends the heartbeats. The meaning of
error codes is the same table (coordinator/classic/state_machine.py).
"""

from __future__ import annotations

import logging
import time
import weakref
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Tuple

from kafka.coordinator.classic.state_machine import (
    Call,
    ClassicErrorAction,
    classic_error_action,
    error_of,
)
from kafka.errors import KafkaError, KafkaTimeoutError, for_code
from kafka.evented.heartbeat import Heartbeat
from kafka.protocol.find_coordinator import FindCoordinatorRequest
from kafka.protocol.group import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from kafka.protocol.plain_values import taker
from kafka.protocol.wire import Message

if TYPE_CHECKING:
    from kafka.client import KafkaClient

__all__ = ['BaseCoordinator', 'HeartbeatTask']

log = logging.getLogger('kafka.coordinator')

#: Added to the time-out of JoinGroup: for the response after the wait for other members.
_GRACE_SECONDS = 5.0
_LONGEST_WAIT_MS = 1000


def as_struct(message: Message, version: int) -> Any:
    """Return a request as the struct of a version, which the evented client sends."""
    kind: Any = type(message)
    take: Any = taker(kind, version)
    return kind[version](*take(message))


class BaseCoordinator:
    """A member of a group (1.x).

    Arguments: client: an evented KafkaClient; metrics, metric_group_prefix: not used; configs:
        those of DEFAULT_CONFIG, others are ignored.

    Attributes: config; group_id; generation: -1 if not joined; member_id: '' if unknown;
    coordinator_id: a node id, None if unknown; protocol: that of the group, None before joining;
    rejoin_needed; heartbeat; heartbeat_task.
    """

    DEFAULT_CONFIG: Dict[str, Any] = {
        'group_id': 'kafka-python-default-group',
        'session_timeout_ms': 30000,
        'heartbeat_interval_ms': 3000,
        'request_timeout_ms': 40000,
        'retry_backoff_ms': 100,
        'api_version': (0, 9),
    }

    def __init__(
        self,
        client: KafkaClient,
        metrics: Any = None,
        metric_group_prefix: str = '',
        **configs: Any,
    ) -> None:
        self.config = {
            name: configs.get(name, default) for name, default in self.DEFAULT_CONFIG.items()
        }
        self._client = client
        self.group_id = self.config['group_id']
        self.generation = -1
        self.member_id = ''
        self.coordinator_id: Any = None
        self.protocol: Optional[str] = None
        self.rejoin_needed = True
        self._is_prepared = False
        self.heartbeat = Heartbeat(**self.config)
        self.heartbeat_task = HeartbeatTask(self)

    def __repr__(self) -> str:
        return '<%s of group %s, member %r, generation %d, node %r>' % (
            type(self).__name__,
            self.group_id,
            self.member_id,
            self.generation,
            self.coordinator_id,
        )

    # ------------------------------------------------------------ for each type of group

    def protocol_type(self) -> str:
        """Return the protocol type of the group, such as 'consumer'."""
        raise NotImplementedError

    def group_protocols(self) -> List[Tuple[str, Any]]:
        """Return (name, metadata) of the protocols that this member supports, the preferred first.

        Metadata are bytes, or have encode().
        """
        raise NotImplementedError

    def _on_join_prepare(self, generation: int, member_id: str) -> None:
        """Prepare for a rebalance: commit, and revoke the assignment."""
        raise NotImplementedError

    def _perform_assignment(
        self, leader_id: str, protocol: str, members: List[Tuple[str, bytes]]
    ) -> Dict[str, Any]:
        """Return the assignment of each member, as group leader; values as in group_protocols()."""
        raise NotImplementedError

    def _on_join_complete(
        self, generation: int, member_id: str, protocol: str, assignment: bytes
    ) -> None:
        """Apply the assignment of this member."""
        raise NotImplementedError

    # ------------------------------------------------------------ the coordinator

    def coordinator_unknown(self) -> bool:
        """Return True if the coordinator must be looked up; also if its connection is gone."""
        if self.coordinator_id is not None and self._client.is_disconnected(self.coordinator_id):
            self.coordinator_dead()
        return self.coordinator_id is None

    def coordinator_dead(self, error: Any = None) -> None:
        """Forget the coordinator until its next use. Arguments: error: why, for the log."""
        if self.coordinator_id is not None:
            log.warning(
                'node %s coordinates group %s no longer: %s',
                self.coordinator_id,
                self.group_id,
                error or 'the connection is gone',
            )
            self.coordinator_id = None

    def ensure_coordinator_known(self) -> None:
        """Find the coordinator, and connect to it.

        Raises non-retriable errors of a broker, such as GroupAuthorizationFailedError, and the last
        error after request_timeout_ms.
        """
        ends_at = time.monotonic() + self.config['request_timeout_ms'] / 1000
        while self.coordinator_unknown():
            try:
                node_id = self._find_coordinator()
                self._client.await_ready(node_id)
                self.coordinator_id = node_id
                self.heartbeat.received_heartbeat()
            except KafkaError as error:
                if not error.retriable or time.monotonic() >= ends_at:
                    raise
                self._back_off()

    def _find_coordinator(self) -> Any:
        node_id = self._client.least_loaded_node()
        if node_id is None:
            raise KafkaTimeoutError('no broker can be asked for the coordinator')
        if self.config['api_version'] < (0, 8, 2):
            return node_id  # any broker can access ZooKeeper
        answer = self._ask(node_id, FindCoordinatorRequest(key=self.group_id), 0)
        cluster = self._client.cluster
        if answer.error_code:
            raise for_code(answer.error_code)('the coordinator of group %s' % self.group_id)
        if not cluster.add_group_coordinator(self.group_id, answer):
            # The metadata has another address for this node, so it must be older than the
            # response.
            cluster.add_broker(answer.node_id, answer.host, answer.port)
        return answer.node_id

    def _ask(
        self, node_id: Any, message: Message, version: int, seconds: Optional[float] = None
    ) -> Any:
        """Return the response to a request. Raises what it failed with, and KafkaTimeoutError."""
        self._client.await_ready(node_id)
        future = self._client.send(node_id, as_struct(message, version))
        seconds = seconds or self.config['request_timeout_ms'] / 1000
        ends_at = time.monotonic() + seconds
        while not future.is_done and time.monotonic() < ends_at:
            left_ms = (ends_at - time.monotonic()) * 1000
            self._client.poll(timeout_ms=min(_LONGEST_WAIT_MS, max(0, left_ms)), future=future)
        if not future.is_done:
            raise KafkaTimeoutError(
                'node %r did not answer %s of group %s within %.3g s'
                % (node_id, type(message).__name__, self.group_id, seconds)
            )
        if future.failed():
            raise future.exception
        return future.value.declared()

    def _back_off(self) -> None:
        """Wait for retry_backoff_ms, polling the client meanwhile."""
        ends_at = time.monotonic() + self.config['retry_backoff_ms'] / 1000
        while time.monotonic() < ends_at:
            left = ends_at - time.monotonic()
            self._client.poll(timeout_ms=max(0, left * 1000))
            time.sleep(max(0.0, min(left, ends_at - time.monotonic(), 0.02)))

    # ------------------------------------------------------------ joining

    def need_rejoin(self) -> bool:
        """Return True if this member has to join or rejoin the group."""
        return self.rejoin_needed

    def ensure_active_group(self) -> None:
        """Join the group if necessary; return once this member has its assignment.

        Takes as long as the other members need. Raises non-retriable errors of a broker, and as
        ensure_coordinator_known().
        """
        if not self.need_rejoin():
            return
        if not self._is_prepared:
            self._on_join_prepare(self.generation, self.member_id)
            self._is_prepared = True
        while self.need_rejoin():
            self.ensure_coordinator_known()
            try:
                assignment = self._join()
            except KafkaError as error:
                if not error.retriable:
                    raise
                self.coordinator_dead(error)
                assignment = None
            if assignment is None:
                continue
            self._on_join_complete(self.generation, self.member_id, str(self.protocol), assignment)
            self._is_prepared = False
            self.heartbeat_task.reset()

    def _join(self) -> Optional[bytes]:
        """Send JoinGroup and SyncGroup once; return the assignment, None to try again."""
        session_ms = self.config['session_timeout_ms']
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=session_ms,
            member_id=self.member_id,
            protocol_type=self.protocol_type(),
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=_encoded(metadata))
                for name, metadata in self._protocols()
            ],
        )
        version = 0 if self.config['api_version'] < (0, 10, 1) else 2
        answer = self._ask(
            self.coordinator_id,
            request,
            version,
            max(session_ms / 1000 + _GRACE_SECONDS, self.config['request_timeout_ms'] / 1000),
        )
        if not self._is_good(Call.JOIN, answer.error_code):
            return None
        self.member_id = answer.member_id
        self.generation = answer.generation_id
        self.protocol = answer.protocol_name
        self.rejoin_needed = False
        shares: Dict[str, Any] = {}
        if answer.leader == self.member_id:
            members = [(each.member_id, each.metadata) for each in answer.members]
            shares = self._perform_assignment(answer.leader, answer.protocol_name, members)
        return self._sync(shares)

    def _protocols(self) -> Iterable[Tuple[str, Any]]:
        return self.group_protocols()

    def _sync(self, shares: Dict[str, Any]) -> Optional[bytes]:
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            assignments=[
                SyncGroupRequestAssignment(member_id=name, assignment=_encoded(share))
                for name, share in shares.items()
            ],
        )
        try:
            answer = self._ask(self.coordinator_id, request, 0)
        except KafkaError:
            self.rejoin_needed = True
            raise
        if not self._is_good(Call.SYNC, answer.error_code):
            self.rejoin_needed = True
            return None
        assignment: bytes = answer.assignment
        return assignment

    def _is_good(self, call: Call, code: int) -> bool:
        """Apply an error code; return True if there is none. Raises errors no retry can cure."""
        verdict = classic_error_action(call, code)
        if verdict is ClassicErrorAction.GOOD:
            return True
        self._settle(verdict, code)
        if verdict in (
            ClassicErrorAction.FATAL,
            ClassicErrorAction.REFUSED,
            ClassicErrorAction.TELL,
        ):
            raise self._error(code)
        if verdict in (ClassicErrorAction.RETRY, ClassicErrorAction.REFIND):
            self._back_off()
        return False

    def _settle(self, verdict: ClassicErrorAction, code: int) -> None:
        """Change the state of the membership as an error action requires."""
        if verdict is ClassicErrorAction.REFIND:
            self.coordinator_dead(self._error(code))
        elif verdict in (ClassicErrorAction.LOST, ClassicErrorAction.LOST_ID):
            self.generation = -1
            if verdict is ClassicErrorAction.LOST_ID:
                self.member_id = ''
            self.rejoin_needed = True
        elif verdict in (ClassicErrorAction.REBALANCE, ClassicErrorAction.FATAL):
            self.rejoin_needed = True

    def _error(self, code: int) -> KafkaError:
        return error_of(code, self.group_id, self.config['session_timeout_ms'] / 1000, None)

    # ------------------------------------------------------------ leaving

    def close(self) -> None:
        """Leave the group; errors of brokers are logged, not raised."""
        self.heartbeat_task.disable()
        if self.generation >= 0 and not self.coordinator_unknown():
            request = LeaveGroupRequest(group_id=self.group_id, member_id=self.member_id)
            try:
                self._ask(self.coordinator_id, request, 0)
            except KafkaError as error:
                log.info('group %s was not told that a member leaves: %s', self.group_id, error)
        self.generation, self.member_id, self.rejoin_needed = -1, '', True


class HeartbeatTask:
    """Sends heartbeats during the client's poll(). Arguments: coordinator: the member.

    A coordinator that was garbage-collected sends none.
    """

    def __init__(self, coordinator: BaseCoordinator) -> None:
        self._of = weakref.ref(coordinator)
        self._client = coordinator._client
        self._is_on_its_way = False

    @property
    def _coordinator(self) -> Optional[BaseCoordinator]:
        return self._of()

    def reset(self) -> None:
        """Start the heartbeats; also restart them after a rebalance."""
        member = self._coordinator
        if member is not None:
            member.heartbeat.reset_session_timeout()
            self._again_in(member.heartbeat.interval)

    def disable(self) -> None:
        """Stop the heartbeats."""
        self._client.unschedule(self)

    def _again_in(self, seconds: float) -> None:
        self._client.schedule(self, time.time() + seconds)

    def __call__(self) -> None:
        """Send a heartbeat if it is due."""
        member = self._coordinator
        if member is None or member.generation < 0 or member.need_rejoin():
            return  # reset() is called after joining
        if member.heartbeat.session_expired():
            member.coordinator_dead('it did not answer for the session time-out')
        if member.coordinator_unknown() or self._is_on_its_way:
            self._again_in(member.config['retry_backoff_ms'] / 1000)
            return
        if not member.heartbeat.should_heartbeat():
            self._again_in(member.heartbeat.ttl())
            return
        request = HeartbeatRequest(
            group_id=member.group_id,
            generation_id=member.generation,
            member_id=member.member_id,
        )
        member.heartbeat.sent_heartbeat()
        self._is_on_its_way = True
        future = self._client.send(member.coordinator_id, as_struct(request, 0))
        future.add_callback(self._answered, member.generation)
        future.add_errback(self._failed)

    def _failed(self, error: BaseException) -> None:
        self._is_on_its_way = False
        if self._coordinator is not None:
            self._again_in(self._coordinator.config['retry_backoff_ms'] / 1000)

    def _answered(self, generation: int, answer: Any) -> None:
        self._is_on_its_way = False
        member = self._coordinator
        if member is None or member.generation != generation:
            return
        verdict = classic_error_action(Call.HEARTBEAT, answer.error_code)
        if verdict in (ClassicErrorAction.GOOD, ClassicErrorAction.REBALANCE):
            member.heartbeat.received_heartbeat()
        member._settle(verdict, answer.error_code)
        if verdict is ClassicErrorAction.TELL:
            log.error('a heartbeat was refused: %s', member._error(answer.error_code))
        backs_off = verdict in (ClassicErrorAction.RETRY, ClassicErrorAction.REFIND)
        pause = member.config['retry_backoff_ms'] / 1000
        self._again_in(pause if backs_off else member.heartbeat.ttl())


def _encoded(value: Any) -> bytes:
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    encoded: bytes = value.encode()
    return encoded
