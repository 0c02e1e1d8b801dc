"""Short ways, for the tests on real brokers, to write, read and measure through the 0.9.5 client.

Owns helpers only; what is compared stands in the tests. Topics go in as bytes, as 0.9.5 has them.
"""

from __future__ import annotations

import time

from kafka import create_message
from kafka.common import FetchRequest, OffsetRequest, ProduceRequest

EARLIEST, LATEST = -2, -1


def offset(client, topic, partition, moment=LATEST):
    """Return the log's end (or its start) of one partition."""
    (answer,) = client.send_offset_request([OffsetRequest(topic.encode(), partition, moment, 1)])
    (found,) = answer.offsets
    return found


def produce(client, topic, partition, messages, acks=1):
    """Write messages (values, or whole ``Message`` tuples) and return the one answer."""
    whole = [m if hasattr(m, 'magic') else create_message(m) for m in messages]
    request = ProduceRequest(topic.encode(), partition, whole)
    (answer,) = client.send_produce_request([request], acks=acks)
    return answer


def fetch(client, topic, partition, at=0, seconds=60):
    """Return every ``OffsetAndMessage`` from offset ``at`` to the log's end as it is now."""
    end = offset(client, topic, partition)
    found = []
    deadline = time.monotonic() + seconds
    while at < end and time.monotonic() < deadline:
        request = FetchRequest(topic.encode(), partition, at, 1 << 20)
        (answer,) = client.send_fetch_request([request])
        for message in answer.messages:
            if message.offset >= at:
                found.append(message)
                at = message.offset + 1
    assert at == end, 'read up to %d of %d' % (at, end)
    return found


def values(messages):
    """Return the values of ``OffsetAndMessage`` tuples."""
    return [found.message.value for found in messages]


def keys_and_values(messages):
    """Return (key, value) pairs of ``OffsetAndMessage`` tuples."""
    return [(found.message.key, found.message.value) for found in messages]


def retry(action, errors, seconds=30):
    """Call ``action`` until it raises none of ``errors``; its result, or the last error in time."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return action()
        except errors:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.1)
