"""A client for the legacy producers and consumers to talk to: logs in memory, answers on demand.

It has the public methods of KafkaClient with the very arguments that those classes may pass, and
nothing else, so that a call of another shape fails. Each call is noted in ``calls``; an answer put
into ``answers`` under the method's name comes instead of the usual one, in order: an exception is
raised, a function is called with the arguments, anything else is returned.
"""

from __future__ import annotations

from collections import defaultdict

from kafka.errors import FailedPayloadsError
from kafka.structs import (
    FetchResponse,
    Message,
    OffsetAndMessage,
    OffsetCommitResponse,
    OffsetFetchResponse,
    OffsetResponse,
    ProduceResponse,
)

OUT_OF_RANGE = 1


def value(number):
    """Return the message that a FakeClient keeps at an offset."""
    return Message(0, 0, None, b'%d' % number)


def record(number):
    """Return offset and message as a consumer hands them out."""
    return OffsetAndMessage(number, value(number))


class FakeClient:
    """Partitions 0, 1 … of one topic; `logs` says from which to which offset each has messages."""

    def __init__(self, *logs, per_fetch=1000):
        self.logs = dict(enumerate(logs or [(0, 0)]))
        self.per_fetch = per_fetch
        self.stored = {}
        self.known = True
        self.calls = []
        self.answers = defaultdict(list)

    def _note(self, name, *args, **kwargs):
        self.calls.append((name, args, kwargs))
        scripted = self.answers[name]
        if not scripted:
            return None
        answer = scripted.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer(*args, **kwargs) if callable(answer) else answer

    def called(self, name):
        """Return the arguments of each call of a method: [(args, kwargs)]."""
        return [(args, kwargs) for called, args, kwargs in self.calls if called == name]

    def asked(self):
        """Return what was fetched, one list of (partition, offset, max_bytes) per call."""
        return [
            [(r.partition, r.offset, r.max_bytes) for r in args[0]]
            for args, kwargs in self.called('send_fetch_request')
        ]

    def copy(self):
        """Return the client itself: what a copy is asked for is asked for here."""
        self._note('copy')
        return self

    def reinit(self):
        self._note('reinit')

    def close(self):
        self._note('close')

    def load_metadata_for_topics(self, *topics):
        self._note('load_metadata_for_topics', *topics)

    def has_metadata_for_topic(self, topic):
        self._note('has_metadata_for_topic', topic)
        return self.known

    def get_partition_ids_for_topic(self, topic):
        answer = self._note('get_partition_ids_for_topic', topic)
        return sorted(self.logs) if answer is None else answer

    def reset_topic_metadata(self, *topics):
        self._note('reset_topic_metadata', *topics)

    def send_produce_request(self, payloads, *, acks, timeout, fail_on_error):
        answer = self._note(
            'send_produce_request',
            payloads,
            acks=acks,
            timeout=timeout,
            fail_on_error=fail_on_error,
        )
        if answer is not None:
            return answer
        return [ProduceResponse(p.topic, p.partition, 0, 7) for p in payloads]

    def send_fetch_request(self, payloads, *, max_wait_time, min_bytes, fail_on_error):
        assert isinstance(max_wait_time, int) and fail_on_error is False
        answer = self._note(
            'send_fetch_request', payloads, max_wait_time=max_wait_time, min_bytes=min_bytes
        )
        # An iterator: answers may be iterated, never indexed or measured.
        return map(self.fetched, payloads) if answer is None else iter(answer)

    def fetched(self, request):
        """Return the answer to one FetchRequest."""
        first, end = self.logs[request.partition]
        if not first <= request.offset <= end:
            return FetchResponse(request.topic, request.partition, OUT_OF_RANGE, -1, ())
        until = min(end, request.offset + self.per_fetch)
        messages = (record(number) for number in range(request.offset, until))
        return FetchResponse(request.topic, request.partition, 0, end, messages)

    def send_offset_request(self, payloads):
        answer = self._note('send_offset_request', payloads)
        if answer is not None:
            return answer
        return (
            OffsetResponse(p.topic, p.partition, 0, (self.logs[p.partition][0],))
            if p.time == -2
            else OffsetResponse(p.topic, p.partition, 0, (self.logs[p.partition][1],))
            for p in payloads
        )

    def send_offset_fetch_request(self, group, payloads, *, fail_on_error):
        assert fail_on_error is False
        answer = self._note('send_offset_fetch_request', group, payloads)
        if answer is not None:
            return answer
        return (
            OffsetFetchResponse(p.topic, p.partition, self.stored.get(p.partition, -1), b'', 0)
            for p in payloads
        )

    def send_offset_commit_request(self, group, payloads):
        answer = self._note('send_offset_commit_request', group, payloads)
        if answer is not None:
            return answer
        self.stored.update((p.partition, p.offset) for p in payloads)
        return [OffsetCommitResponse(p.topic, p.partition, 0) for p in payloads]


class LaterFakeClient(FakeClient):
    """What a client of 1.x is to its users: names as they are given, and two more ways to ask."""

    names_as_given = True

    def load_metadata_for_topics(self, *topics, **options):
        self._note('load_metadata_for_topics', *topics, **options)

    def ensure_topic_exists(self, topic):
        self._note('ensure_topic_exists', topic)


def failing(*partitions):
    """Return an answer to a fetch in which these partitions fail and the others bring nothing."""

    def answer(payloads, **kwargs):
        for payload in payloads:
            if payload.partition in partitions:
                yield FailedPayloadsError(payload)
            else:
                yield FetchResponse(payload.topic, payload.partition, 0, 0, ())

    return answer


class DownClient(FakeClient):
    """A client whose brokers are all away: whatever is sent fails."""

    def send_produce_request(self, payloads, **options):
        return [FailedPayloadsError(payload) for payload in payloads]
