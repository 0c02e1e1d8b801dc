"""A fast path for OffsetCommit version 0 of one partition without metadata, and its response.

Consumers of 0.9.5 commit every hundred messages. Encodes and decodes bytes directly, in the layout
that ``commit.py`` declares. Returns None for anything unusual or invalid, which ``legacy.py`` and
``versioned.py`` then handle. Tests compare both implementations; benchmarks/simple.py --only
default measures the gain.
"""

from __future__ import annotations

import struct
from typing import Any, Optional, Tuple

__all__ = ['commit_request', 'read_committed']

# Size, API key, version, correlation id, client id; group; one topic; one partition: its number,
# offset, null metadata. Strings are a length and bytes.
_REQUEST = '>ihhih%dsh%dsih%dsiiqh'
_FIXED_BYTES = struct.calcsize(_REQUEST % (0, 0, 0)) - 4  # without strings and the size itself

_COUNT_AND_LENGTH = struct.Struct('>ih')  # one topic, the length of its name
_COMMITTED = struct.Struct('>iih')  # one partition: its number, error code

_OFFSET_COMMIT = 8


def commit_request(
    correlation_id: int, client: bytes, group: bytes, topic: bytes, partition: int, offset: int
) -> Optional[bytes]:
    """Return an OffsetCommit of version 0 as a frame, None if a value cannot be packed."""
    sizes = len(client), len(group), len(topic)
    try:
        return struct.pack(
            _REQUEST % sizes,
            _FIXED_BYTES + sizes[0] + sizes[1] + sizes[2],
            _OFFSET_COMMIT,
            0,
            correlation_id,
            sizes[0],
            client,
            sizes[1],
            group,
            1,
            sizes[2],
            topic,
            1,
            partition,
            offset,
            -1,
        )
    except struct.error:
        return None


def read_committed(data: Any, start: int) -> Optional[Tuple[bytes, int, int]]:
    """Return topic, partition and error code of a response whose body begins at `start`.

    None unless it has exactly one partition and fills the bytes.
    """
    try:
        topics, length = _COUNT_AND_LENGTH.unpack_from(data, start)
        end = start + _COUNT_AND_LENGTH.size + length
        if topics != 1 or length < 0 or len(data) != end + _COMMITTED.size:
            return None
        partitions, partition, error = _COMMITTED.unpack_from(data, end)
    except struct.error:
        return None
    if partitions != 1:
        return None
    return data[end - length : end], partition, error
