"""Send a script to one broker over a blocking socket and write down what it says.

Owns the connection and the context from which requests are built: names of topics and groups, what
was remembered, and the preparations that are no part of the comparison (a topic that is to be
there, a coordinator that has to be found).
"""

from __future__ import annotations

import logging
import socket
import struct
import time
from typing import Any, Callable, Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Set, Tuple

from kafka.errors import KafkaError
from kafka.protocol.api import ApiKey, decode_response, encode_request, response_class
from kafka.protocol.wire import Message
from kafka.testing.releases import BrokerRelease
from test.differential.answers import Names, plain
from test.differential.records import AGE_MS
from test.differential.script import (
    HIGH,
    KRAFT_SETTLES_LATE,
    REFUSED_ABOVE,
    REFUSED_BELOW,
    SETTLES,
    Case,
    Step,
    framed,
    request_of,
    served_versions,
)

log = logging.getLogger(__name__)

CLIENT_ID = 'differential'
ANSWER_SECONDS = 8.0
SILENT_SECONDS = 1.0
PREPARE_SECONDS = 30.0
AGAIN_SECONDS = 0.05
#: The longest pause between two looks whether something is there.
LOOK_SECONDS = 0.01
SLOW_SECONDS = 0.5
AGAIN_TIMES = 200
#: As long as that where a broker was never ready, or never said anything, another time.
KNOWN_SECONDS = 1.0
KNOWN_TIMES = 20
SETTLE_SECONDS = 0.1

COORDINATOR_LOAD_IN_PROGRESS = 14
COORDINATOR_NOT_AVAILABLE = 15
NOT_COORDINATOR = 16
CONCURRENT_TRANSACTIONS = 51
NOT_READY = frozenset([COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR])
#: Errors of a broker that is about to be ready: asked again, not written down.
NOT_YET = frozenset([COORDINATOR_LOAD_IN_PROGRESS, CONCURRENT_TRANSACTIONS])

#: Kinds of what coordinators are found for.
GROUP_KEY, TRANSACTION_KEY = 0, 1

CLOSED = 'closed'
SILENT = 'silent'

#: case and step -> {'outcome': ..., 'answer': ...}
Recording = Dict[str, Dict[str, Any]]


class Reply(NamedTuple):
    """``outcome`` is 'answer', 'closed', 'silent' or 'unreadable'; ``body`` what came."""

    outcome: str
    body: bytes = b''


#: Logs a connection in: gets a function that sends a frame and reads one.
Greeting = Callable[[Callable[[bytes], bytes]], None]


class Wire:
    """A blocking connection that is made anew when the broker has closed it.

    Arguments: greeting: what is done first on each.
    """

    def __init__(self, address: Tuple[str, int], greeting: Optional[Greeting] = None) -> None:
        self.address = address
        self._greeting = greeting
        self._socket: Optional[socket.socket] = None

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def send(self, frames: bytes) -> None:
        """Send bytes. Raises OSError."""
        if self._socket is None:
            self._socket = socket.create_connection(self.address, ANSWER_SECONDS)
            if self._greeting is not None:
                self._greeting(self._first)
        self._socket.sendall(frames)

    def _first(self, frame: bytes) -> bytes:
        """Send a frame and read one."""
        assert self._socket is not None
        self._socket.sendall(frame)
        (size,) = struct.unpack('>i', self._exactly(4))
        return self._exactly(size)

    def exchange(self, frames: bytes, seconds: float) -> Reply:
        """Send bytes, if there are any, and wait for one frame."""
        try:
            self.send(frames)
            assert self._socket is not None
            self._socket.settimeout(seconds)
            (size,) = struct.unpack('>i', self._exactly(4))
            return Reply('answer', self._exactly(size))
        except socket.timeout:
            reply = Reply(SILENT)
        except OSError:
            reply = Reply(CLOSED)
        self.close()
        return reply

    def is_closed_within(self, seconds: float) -> bool:
        """Tell whether the broker closes the connection, if there is one, in so many seconds."""
        if self._socket is None:
            return False
        try:
            self._socket.settimeout(seconds)
            return not self._socket.recv(1)
        except socket.timeout:
            return False
        except OSError:
            return True

    def _exactly(self, size: int) -> bytes:
        assert self._socket is not None
        data = bytearray()
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise ConnectionResetError('closed')
            data += more
        return bytes(data)


class Patience(NamedTuple):
    """How long is waited for a broker.

    ``answer_seconds``: for any answer; ``known_seconds``: for one that did not come another time;
    ``known``: steps in which it did not, or in which the broker was not ready all the time;
    ``settle_seconds``: before a step whose answer must have settled; ``left_seconds``: behind a
    request whose answer is read later.
    """

    answer_seconds: float = ANSWER_SECONDS
    known_seconds: float = KNOWN_SECONDS
    known: FrozenSet[str] = frozenset()
    settle_seconds: float = 0.0
    left_seconds: float = 0.2


class Context:
    """What the requests of a script are built from.

    Attributes: release; now_ms: the time that all records count from; version and label: of the
    case; values: what the case remembered, empty at its beginning.
    """

    def __init__(
        self,
        wire: Wire,
        release: BrokerRelease,
        patience: Patience,
        greet: Optional[Callable[[str], Greeting]] = None,
    ) -> None:
        self.release = release
        self._greet = greet
        self.now_ms = int(time.time()) * 1000 - AGE_MS
        self.values: Dict[str, Any] = {}
        self.label = ''
        self.version = 0
        self.names = Names()
        self.patience = patience
        self.answer_seconds = patience.answer_seconds
        self._wire = self._shared_wire = wire
        self._wires: Dict[str, Wire] = {}
        self._left: Dict[str, Tuple[int, int, int]] = {}  # by wire: API, version, correlation id
        self._known_topics: Dict[str, bytes] = {}
        self._group_topics: Set[str] = set()
        self._correlation_id = 0

    # ------------------------------------------------------------ names

    def begin(self, label: str) -> None:
        """Begin a case: forget what the one before remembered."""
        for wire in self._wires.values():
            wire.close()
        self._wires, self._left = {}, {}
        self.values = {}
        self.label = label
        self.names = Names({topic_id: name for name, topic_id in self._known_topics.items()})

    def name(self, word: str = 'x') -> str:
        """Return a name that only this case uses."""
        return '%s-%s' % (self.label, word)

    def topic(self, word: str = 't') -> str:
        """Return a topic of this case, with two partitions, made if it is not there yet."""
        return self.common_topic(self.name(word))

    def common_topic(self, name: str = 'common') -> str:
        """Return a topic that all cases share, made if it is not there yet."""
        if name not in self._known_topics:
            self._known_topics[name] = self._make_topic(name)
            self.names.note_topic(self._known_topics[name], name)
        return name

    def group_topic(self) -> str:
        """Return the topic of this case when the coordinators of groups know it too.

        They learn of it after the broker leads its partitions. A member that joins between is
        told that the topic is missing, or gets none of its partitions.
        """
        name = self.topic()
        if name not in self._group_topics:
            self.settle(is_late=True)
            self._group_topics.add(name)
        return name

    def topic_id(self, name: str) -> bytes:
        """Return the id of a topic that exists."""
        return self._known_topics.get(name) or self._make_topic(name)

    def group(self, word: str = 'g') -> str:
        """Return a group of this case, whose coordinator is ready."""
        group = self.name(word)
        self.find_coordinator(group, GROUP_KEY)
        return group

    def transaction(self, word: str = 'x') -> str:
        """Return a transactional id of this case, whose coordinator is known."""
        transactional_id = self.name(word)
        self.find_coordinator(transactional_id, TRANSACTION_KEY)
        return transactional_id

    # ------------------------------------------------------------ asking

    def use_wire(self, name: str, user: str) -> None:
        """Send over a connection of the case from now on, or over the one of all cases."""
        if name and name not in self._wires:
            greeting = self._greet(user) if self._greet is not None and user else None
            self._wires[name] = Wire(self._shared_wire.address, greeting)
        self._wire = self._wires[name] if name else self._shared_wire

    def leave(self, name: str, api: int, version: int, frames: bytes) -> str:
        """Send a request whose answer is read later; give the broker time to take it."""
        self._left[name] = api, version, self._correlation_id
        try:
            self._wire.send(frames)
        except OSError:
            return CLOSED
        time.sleep(self.patience.left_seconds)
        return 'sent'

    def read_left(self, name: str) -> Tuple[int, int, str, Any]:
        """Return API, version, outcome and answer of what was left."""
        api, version, correlation_id = self._left.pop(name)
        return (api, version, *self.exchange(api, version, b'', correlation_id))

    def frame(self, message: Message, version: int) -> bytes:
        """Return a request with its length."""
        self._correlation_id += 1
        data = encode_request(message, version, self._correlation_id, CLIENT_ID)
        return framed(data)

    def ask(self, api: int, values: Dict[str, Any], version: int = HIGH) -> Any:
        """Ask something that is not written down; None if there is no answer."""
        if version == HIGH:
            version = served_versions(api, self.release)[-1]
        wire, self._wire = self._wire, self._shared_wire
        try:
            frame = self.frame(request_of(api, values, version), version)
            return self.exchange(api, version, frame)[1]
        finally:
            self._wire = wire

    def exchange(
        self, api: int, version: int, frames: bytes, expected: Optional[int] = None
    ) -> Tuple[str, Any]:
        """Send bytes; return the outcome and the answer, read as one of the API's version.

        Arguments: expected: correlation id, None for that of the last request.
        """
        reply = self._wire.exchange(frames, self.answer_seconds)
        if reply.outcome != 'answer':
            return reply.outcome, None
        try:
            if api == ApiKey.API_VERSIONS and reply.body[4:6] == b'\x00\x23':
                version = 0
            correlation_id, answer = decode_response(response_class(api), reply.body, version)
        except KafkaError:
            self._wire.close()
            return 'unreadable', None
        if expected is None:
            expected = self._correlation_id
        return ('answer' if correlation_id == expected else 'misplaced'), answer

    def exchange_silent(self, frames: bytes) -> str:
        """Send what gets no answer, and a question behind it; return what became of the first."""
        version = served_versions(ApiKey.METADATA, self.release)[0]
        topics = [{'name': self.common_topic()}]
        question = self.frame(request_of(ApiKey.METADATA, {'topics': topics}, version), version)
        reply = self._wire.exchange(frames + question, self.answer_seconds)
        if reply.outcome == 'answer':
            answers = struct.unpack_from('>i', reply.body)[0] == self._correlation_id
            if not answers:
                self._wire.close()
            return 'no answer' if answers else 'an answer'
        return reply.outcome

    def wire_exchange(self, frames: bytes) -> str:
        """Send bytes that are no good request; return what became of them."""
        reply = self._wire.exchange(frames, min(SILENT_SECONDS, self.answer_seconds))
        self._wire.close()
        return reply.outcome

    # ------------------------------------------------------------ preparations

    def settle(self, is_late: bool = False) -> None:
        """Wait until the broker itself knows what its cluster has decided.

        KRaft brokers tell to where they know the log of decisions; others need a moment. What they
        make of a decision is known for certain when they know a later one, which comes by itself.

        Arguments: is_late: wait for that.
        """
        if not self.patience.settle_seconds:
            return
        if not self.release.has_zookeeper:
            quorum = {'topic_name': '__cluster_metadata', 'partitions': [{'partition_index': 0}]}
            told = self.ask(ApiKey.DESCRIBE_QUORUM, {'topics': [quorum]})
            end = told.topics[0].partitions[0].high_watermark
            wanted = end if is_late else end - 1
            self.until(lambda: self._known_offset() >= wanted, 'news of the cluster')
            time.sleep(self.patience.settle_seconds)
        else:
            time.sleep(3 * self.patience.settle_seconds)

    def _known_offset(self) -> int:
        software = {'client_software_name': 'script', 'client_software_version': '1'}
        return int(self.ask(ApiKey.API_VERSIONS, software, 3).finalized_features_epoch)

    def use_up_producer_id_0(self) -> None:
        """Let no case get the producer id that looks like none."""
        if served_versions(ApiKey.INIT_PRODUCER_ID, self.release):
            asked = {'transactional_id': None, 'transaction_timeout_ms': 1000}
            self.until(
                lambda: not self.ask(ApiKey.INIT_PRODUCER_ID, asked, 0).error_code, 'a producer id'
            )

    def _make_topic(self, name: str) -> bytes:
        """Have a topic created by asking for it; wait until it can be written to; return its id."""

        def look() -> Optional[Any]:
            told = self.ask(ApiKey.METADATA, {'topics': [{'name': name}]})
            if told is None or not told.topics or told.topics[0].error_code:
                return None
            partitions = told.topics[0].partitions
            ready = partitions and all(p.leader_id >= 0 and not p.error_code for p in partitions)
            return told.topics[0] if ready and self._is_led(name, len(partitions)) else None

        return bytes(self.until(look, 'topic ' + name).topic_id)

    def _is_led(self, name: str, count: int) -> bool:
        """Tell whether the broker leads all partitions: with KRaft that is after it said so."""
        parts = [{'partition_index': i, 'timestamp': -1} for i in range(count)]
        asked = {'replica_id': -1, 'topics': [{'name': name, 'partitions': parts}]}
        told = self.ask(ApiKey.LIST_OFFSETS, asked)
        return told is None or not any(p.error_code for p in told.topics[0].partitions)

    def find_coordinator(self, key: str, kind: int) -> None:
        """Wait until the coordinator of a group or a transactional id is ready.

        Arguments: kind: GROUP_KEY or TRANSACTION_KEY.
        """
        values = {'key': key, 'key_type': kind, 'coordinator_keys': [key]}
        if not served_versions(ApiKey.FIND_COORDINATOR, self.release):
            return

        def look() -> bool:
            told = self.ask(ApiKey.FIND_COORDINATOR, values)
            found = told.coordinators[0] if told and told.coordinators else told
            return found is None or found.error_code != COORDINATOR_NOT_AVAILABLE

        self.until(look, 'a coordinator of ' + key)
        if kind == GROUP_KEY:
            self.until(lambda: self._is_loaded(key), 'offsets of ' + key)
        elif served_versions(ApiKey.DESCRIBE_TRANSACTIONS, self.release):
            self.until(lambda: self._knows_transactions(key), 'transactions of ' + key)

    def _knows_transactions(self, transactional_id: str) -> bool:
        told = self.ask(ApiKey.DESCRIBE_TRANSACTIONS, {'transactional_ids': [transactional_id]})
        return told.transaction_states[0].error_code not in NOT_READY

    def _is_loaded(self, group: str) -> bool:
        versions = served_versions(ApiKey.OFFSET_FETCH, self.release)
        topics = [{'name': 'none', 'partition_indexes': [0]}]
        version = min(versions[-1], 5)
        told = self.ask(ApiKey.OFFSET_FETCH, {'group_id': group, 'topics': topics}, version)
        if told is None:
            return True
        codes = {p.error_code for t in told.topics for p in t.partitions} | {told.error_code}
        return not codes & NOT_READY

    def until(self, look: Callable[[], Any], what: str) -> Any:
        """Look again and again until there is something to return."""
        end = time.monotonic() + PREPARE_SECONDS
        pause = 0.001
        while True:
            found = look()
            if found:
                return found
            if time.monotonic() > end:
                raise AssertionError('waited too long for ' + what)
            time.sleep(pause)
            pause = min(2 * pause, LOOK_SECONDS)


def error_codes(answer: Any) -> List[int]:
    """Return all error codes in an answer as JSON."""
    if isinstance(answer, dict):
        own = [v for key, v in answer.items() if key.endswith('error_code') and isinstance(v, int)]
        return own + [code for value in answer.values() for code in error_codes(value)]
    if isinstance(answer, list):
        return [code for value in answer for code in error_codes(value)]
    return []


def hopeless(recording: Recording) -> FrozenSet[str]:
    """Return the steps in which a broker said nothing, or that it is not ready."""
    return frozenset(
        name
        for name, entry in recording.items()
        if entry['outcome'] == SILENT or not NOT_YET.isdisjoint(error_codes(entry.get('answer')))
    )


def run(
    chosen: Iterable[Case],
    address: Tuple[str, int],
    release: BrokerRelease,
    patience: Patience,
    greet: Optional[Callable[[str], Greeting]] = None,
    user: str = '',
) -> Recording:
    """Send cases of a script to the broker at an address; return what it answered.

    Arguments: greet: gets a user and returns what logs it in; user: who prepares and asks what
        nobody else does.
    """
    wire = Wire(address, greet(user) if greet is not None else None)
    began = time.monotonic()
    context = Context(wire, release, patience, greet)
    recording: Recording = {}
    try:
        context.use_up_producer_id_0()
        for case in chosen:
            _run_case(context, case, recording)
            log.debug('%s after %.1f s', case.label, time.monotonic() - began)
    finally:
        context.begin('')
        wire.close()
    return recording


def _run_case(context: Context, case: Case, recording: Recording) -> None:
    context.begin(case.label)
    for step in case.scenario.steps:
        versions = served_versions(step.api, context.release)
        refused = case.scenario.versions in (REFUSED_ABOVE, REFUSED_BELOW)
        if step.api == case.api:
            context.version = case.version
        elif not versions:
            continue
        else:
            context.version = max(versions[0], min(step.version, versions[-1]))
        if step.when is not None and not step.when(context):
            continue
        name = '%s/%s' % (case.label, step.name)
        began = time.monotonic()
        try:
            recording[name] = _asked(context, step, case.api, refused, name)
        except (AssertionError, AttributeError, IndexError, KeyError, TypeError) as error:
            # What an earlier step should have left is missing: that step shows the difference.
            recording[name] = {'outcome': 'not asked: %s %s' % (type(error).__name__, error)}
        seconds = time.monotonic() - began
        if seconds >= SLOW_SECONDS:
            log.info('%s took %.1f s: %s', name, seconds, recording[name]['outcome'])


def _asked(context: Context, step: Step, api: int, refused: bool, name: str) -> Dict[str, Any]:
    """Do one step; ask again while the broker is not ready."""
    patience = context.patience
    is_known = name in patience.known
    context.answer_seconds = patience.known_seconds if is_known else patience.answer_seconds
    if step.settles == SETTLES or step.settles and not context.release.has_zookeeper:
        context.settle(is_late=step.settles == KRAFT_SETTLES_LATE)
    context.use_wire(step.wire or step.user, step.user)
    if step.frame is not None:
        return {'outcome': context.wire_exchange(step.frame(context))}
    if step.fields is None:
        return _read_left(context, step)
    for _ in range(KNOWN_TIMES if is_known else AGAIN_TIMES):
        values, version = step.fields(context), context.version
        if refused and step.api == api:
            frames, version = _refused(context, api, values)
        else:
            message = request_of(step.api, values, version)
            frames = context.frame(message, version)
        if step.left:
            return {'outcome': context.leave(step.wire, step.api, version, frames)}
        if step.is_silent:
            return {'outcome': context.exchange_silent(frames)}
        outcome, answer = context.exchange(step.api, version, frames)
        if answer is None:
            return {'outcome': outcome}
        is_old = step.api == ApiKey.API_VERSIONS and answer.error_code == 35
        shown = plain(answer, 0 if is_old else version, context.now_ms, context.names)
        if NOT_YET.isdisjoint(error_codes(shown)):
            break
        time.sleep(AGAIN_SECONDS)
    if step.keep is not None:
        step.keep(context, answer)
    return {'outcome': outcome, 'answer': shown}


def _read_left(context: Context, step: Step) -> Dict[str, Any]:
    """Read the answer to an earlier step on the same wire."""
    _, version, outcome, answer = context.read_left(step.wire)
    if answer is None:
        return {'outcome': outcome}
    if step.keep is not None:
        step.keep(context, answer)
    shown = plain(answer, version, context.now_ms, context.names)
    return {'outcome': outcome, 'answer': shown}


def _refused(context: Context, api: int, values: Dict[str, Any]) -> Tuple[bytes, int]:
    """Return a request of a version that is not served, in the layout of the nearest, and that.

    Releases before 0.9 look at no version: they answer in the layout that they know.
    """
    near = served_versions(api, context.release)
    version = near[-1] if context.version > near[-1] else near[0]
    frames = bytearray(context.frame(request_of(api, values, version), version))
    struct.pack_into('>h', frames, 6, context.version)
    return bytes(frames), version
