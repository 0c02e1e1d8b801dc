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
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from kafka.errors import KafkaError
from kafka.protocol.api import ApiKey, decode_response, encode_request, response_class
from kafka.protocol.wire import Message
from kafka.testing.releases import BrokerRelease
from test.differential.answers import plain
from test.differential.script import (
    HIGH,
    REFUSED_ABOVE,
    REFUSED_BELOW,
    Case,
    Scenario,
    Step,
    cases,
    request_of,
    served_versions,
)

log = logging.getLogger(__name__)

CLIENT_ID = 'differential'
ANSWER_SECONDS = 8.0
SILENT_SECONDS = 1.0
PREPARE_SECONDS = 30.0
AGAIN_SECONDS = 0.05
SLOW_SECONDS = 0.5
AGAIN_TIMES = 200

COORDINATOR_LOAD_IN_PROGRESS = 14
COORDINATOR_NOT_AVAILABLE = 15
NOT_COORDINATOR = 16
CONCURRENT_TRANSACTIONS = 51
#: Errors of a broker that is about to be ready: asked again, not written down.
NOT_YET = frozenset([COORDINATOR_LOAD_IN_PROGRESS, CONCURRENT_TRANSACTIONS])

CLOSED = 'closed'
SILENT = 'silent'

#: case and step -> {'outcome': ..., 'answer': ...}
Recording = Dict[str, Dict[str, Any]]


class Reply(NamedTuple):
    """``outcome`` is 'answer', 'closed', 'silent' or 'unreadable'; ``body`` what came."""

    outcome: str
    body: bytes = b''


class Wire:
    """A blocking connection that is made anew when the broker has closed it."""

    def __init__(self, address: Tuple[str, int]) -> None:
        self._address = address
        self._socket: Optional[socket.socket] = None

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def exchange(self, frames: bytes, seconds: float) -> Reply:
        """Send bytes and wait for one frame."""
        if self._socket is None:
            self._socket = socket.create_connection(self._address, ANSWER_SECONDS)
        self._socket.settimeout(seconds)
        try:
            self._socket.sendall(frames)
            (size,) = struct.unpack('>i', self._exactly(4))
            return Reply('answer', self._exactly(size))
        except socket.timeout:
            reply = Reply(SILENT)
        except OSError:
            reply = Reply(CLOSED)
        self.close()
        return reply

    def _exactly(self, size: int) -> bytes:
        assert self._socket is not None
        data = bytearray()
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise ConnectionResetError('closed')
            data += more
        return bytes(data)


class Context:
    """What the requests of a script are built from.

    Attributes: release; now_ms: the time that all records count from; version and label: of the
    case; values: what the case remembered, empty at its beginning.
    """

    def __init__(
        self, wire: Wire, release: BrokerRelease, answer_seconds: float = ANSWER_SECONDS
    ) -> None:
        self.release = release
        self.now_ms = int(time.time()) * 1000 - 3_600_000
        self.values: Dict[str, Any] = {}
        self.label = ''
        self.version = 0
        self.answer_seconds = answer_seconds
        self._wire = wire
        self._known_topics: Dict[str, bytes] = {}
        self._correlation_id = 0

    # ------------------------------------------------------------ names

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
        return name

    def topic_id(self, name: str) -> bytes:
        """Return the id of a topic that exists."""
        return self._known_topics.get(name) or self._make_topic(name)

    def group(self, word: str = 'g') -> str:
        """Return a group of this case, whose coordinator is ready."""
        group = self.name(word)
        self._coordinator(group, 0)
        return group

    def transaction(self, word: str = 'x') -> str:
        """Return a transactional id of this case, whose coordinator is known."""
        transactional_id = self.name(word)
        self._coordinator(transactional_id, 1)
        return transactional_id

    # ------------------------------------------------------------ asking

    def frame(self, message: Message, version: int) -> bytes:
        """Return a request with its length."""
        self._correlation_id += 1
        data = encode_request(message, version, self._correlation_id, CLIENT_ID)
        return struct.pack('>i', len(data)) + data

    def ask(self, api: int, values: Dict[str, Any], version: int = HIGH) -> Any:
        """Ask something that is not written down; None if there is no answer."""
        if version == HIGH:
            version = served_versions(api, self.release)[-1]
        return self.exchange(api, version, self.frame(request_of(api, values, version), version))[1]

    def exchange(self, api: int, version: int, frames: bytes) -> Tuple[str, Any]:
        """Send bytes; return the outcome and the answer, read as one of the API's version."""
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
        return ('answer' if correlation_id == self._correlation_id else 'misplaced'), answer

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
        reply = self._wire.exchange(frames, SILENT_SECONDS)
        self._wire.close()
        return reply.outcome

    # ------------------------------------------------------------ preparations

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

    def _coordinator(self, key: str, kind: int) -> None:
        values = {'key': key, 'key_type': kind, 'coordinator_keys': [key]}
        if not served_versions(ApiKey.FIND_COORDINATOR, self.release):
            return

        def look() -> bool:
            told = self.ask(ApiKey.FIND_COORDINATOR, values)
            found = told.coordinators[0] if told and told.coordinators else told
            return found is None or found.error_code != COORDINATOR_NOT_AVAILABLE

        self.until(look, 'a coordinator of ' + key)
        if kind == 0:
            self.until(lambda: self._is_loaded(key), 'offsets of ' + key)

    def _is_loaded(self, group: str) -> bool:
        versions = served_versions(ApiKey.OFFSET_FETCH, self.release)
        topics = [{'name': 'none', 'partition_indexes': [0]}]
        version = min(versions[-1], 5)
        told = self.ask(ApiKey.OFFSET_FETCH, {'group_id': group, 'topics': topics}, version)
        if told is None:
            return True
        codes = {p.error_code for t in told.topics for p in t.partitions} | {told.error_code}
        return not codes & {
            COORDINATOR_LOAD_IN_PROGRESS,
            COORDINATOR_NOT_AVAILABLE,
            NOT_COORDINATOR,
        }

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
            pause = min(2 * pause, AGAIN_SECONDS)


def error_codes(answer: Any) -> List[int]:
    """Return all error codes in an answer as JSON."""
    if isinstance(answer, dict):
        own = [v for key, v in answer.items() if key.endswith('error_code') and isinstance(v, int)]
        return own + [code for value in answer.values() for code in error_codes(value)]
    if isinstance(answer, list):
        return [code for value in answer for code in error_codes(value)]
    return []


def is_wanted(name: str, only: str) -> bool:
    """Tell whether the name of a case has one of the words, with commas between; none: any has."""
    return any(word in name for word in only.split(','))


def run(
    scenarios: Sequence[Scenario],
    address: Tuple[str, int],
    release: BrokerRelease,
    only: str = '',
    answer_seconds: float = ANSWER_SECONDS,
) -> Recording:
    """Send a script to the broker at an address; return what it answered.

    Arguments: only: parts of the names of the cases that are wanted, with commas between.
    """
    wire = Wire(address)
    began = time.monotonic()
    context = Context(wire, release, answer_seconds)
    recording: Recording = {}
    try:
        for case in cases(scenarios, release):
            if is_wanted(case.label, only):
                _run_case(context, case, recording)
                log.debug('%s after %.1f s', case.label, time.monotonic() - began)
    finally:
        wire.close()
    return recording


def _run_case(context: Context, case: Case, recording: Recording) -> None:
    context.values = {}
    context.label = case.label
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
            recording[name] = _asked(context, step, case.api, refused)
        except (AssertionError, AttributeError, IndexError, KeyError, TypeError) as error:
            # What an earlier step should have left is missing: that step shows the difference.
            recording[name] = {'outcome': 'not asked: %s %s' % (type(error).__name__, error)}
        seconds = time.monotonic() - began
        if seconds >= SLOW_SECONDS:
            log.info('%s took %.1f s: %s', name, seconds, recording[name]['outcome'])


def _asked(context: Context, step: Step, api: int, refused: bool) -> Dict[str, Any]:
    """Do one step; ask again while the broker is not ready."""
    if step.frame is not None:
        return {'outcome': context.wire_exchange(step.frame(context))}
    assert step.fields is not None
    for _ in range(AGAIN_TIMES):
        values, version = step.fields(context), context.version
        if refused and step.api == api:
            frames, version = _refused(context, api, values)
        else:
            message = request_of(step.api, values, version)
            frames = context.frame(message, version)
        if step.is_silent:
            return {'outcome': context.exchange_silent(frames)}
        outcome, answer = context.exchange(step.api, version, frames)
        if answer is None:
            return {'outcome': outcome}
        is_old = step.api == ApiKey.API_VERSIONS and answer.error_code == 35
        shown = plain(answer, 0 if is_old else version, context.now_ms)
        if NOT_YET.isdisjoint(error_codes(shown)):
            break
        time.sleep(AGAIN_SECONDS)
    if step.keep is not None:
        step.keep(context, answer)
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
