"""What the tests of SimpleConsumer share: a clock moved by hand, a client that waits by it."""

from __future__ import annotations

from kafka.consumer import SimpleConsumer
from kafka.structs import FetchResponse
from test.fake_client import FakeClient


class Clock:
    """Time that passes only when somebody sleeps, or a fetch waits for messages in vain."""

    def __init__(self):
        self.now = 1000.0
        self.slept = []

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        assert seconds >= 0
        self.slept.append(seconds)
        self.now += seconds


class WaitingClient(FakeClient):
    """Waits as a broker does: for max_wait_time when there is nothing and a byte is wanted."""

    def __init__(self, clock, *logs, **options):
        super().__init__(*logs, **options)
        self.clock = clock

    def send_fetch_request(self, payloads, **kwargs):
        answers = [
            answer._replace(messages=list(answer.messages))
            if isinstance(answer, FetchResponse)
            else answer
            for answer in super().send_fetch_request(payloads, **kwargs)
        ]
        nothing = not any(getattr(answer, 'messages', True) for answer in answers)
        if nothing and kwargs['min_bytes']:
            self.clock.now += kwargs['max_wait_time'] / 1000
        return answers


def consumer(client, group=None, **options):
    options.setdefault('auto_commit', False)
    return SimpleConsumer(client, group, 'topic', **options)


def offsets_of(messages):
    return [message.offset for message in messages]


def waits(client):
    """Return (max_wait_time, min_bytes) of each fetch."""
    return [
        (kwargs['max_wait_time'], kwargs['min_bytes'])
        for _, kwargs in client.called('send_fetch_request')
    ]
