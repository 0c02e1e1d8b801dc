"""The compiled code of every message and version agrees with the interpreter of the schema.

``HYPOTHESIS_PROFILE=thorough`` runs 10,000 random instances in all, spread evenly.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from kafka.errors import BufferUnderflowError
from kafka.protocol.fetch import FetchPartition
from kafka.protocol.group import HeartbeatRequest
from test.protocol import interpreter
from test.protocol.strategies import PAIRS, instances

#: A profile's number of examples counts for all pairs together; each pair gets at least two. Two
#: more make up for the pairs that have fewer instances than that.
PER_PAIR = 2 + settings.default.max_examples // len(PAIRS)


@pytest.mark.parametrize(
    'cls, version', PAIRS, ids=['%s-v%d' % (cls.__name__, version) for cls, version in PAIRS]
)
def test_random_instances_agree_with_the_interpreter(cls, version):
    """Same bytes from both writers; both readers give back the instance, unknown tags included."""

    @settings(max_examples=PER_PAIR)
    @given(instances(cls, version))
    def agree(message):
        data = message.encode(version)
        assert data == interpreter.encode(message, version)
        assert cls.decode(data, version) == message
        assert interpreter.decode(cls, data, version) == message

    agree()


def test_code_is_compiled_on_first_use_and_kept():
    HeartbeatRequest.encoders.clear()
    request = HeartbeatRequest('g', 1, 'm')
    request.encode(2)
    writer = HeartbeatRequest.encoders[2]
    request.encode(2)
    assert HeartbeatRequest.encoders == {2: writer}


def test_constructors_are_compiled_on_first_use():
    FetchPartition(0, fetch_offset=0, partition_max_bytes=0)
    assert FetchPartition.__init__.__qualname__ == 'FetchPartition.__init__'


def test_generated_code_is_named_after_what_it_reads():
    """So that a traceback through it tells which message and version it was."""
    with pytest.raises(BufferUnderflowError) as caught:
        HeartbeatRequest.decode(b'', 3)
    frame = caught.value.__cause__.__traceback__.tb_next.tb_frame
    assert frame.f_code.co_filename == '<HeartbeatRequest v3 read>'
