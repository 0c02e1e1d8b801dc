"""Random instances of every message in every version, for hypothesis.

Fields that a version doesn't carry keep their default, so that what is read back must be equal.
Lengths beyond 127 are drawn now and then: their varints have two bytes.
"""

from __future__ import annotations

import functools

from hypothesis import strategies as st

from kafka.protocol import api, consumer_protocol
from kafka.protocol.schema import Kind, ListOf

MESSAGES = [
    *(api.request_class(key) for key in api.ApiKey),
    *(api.response_class(key) for key in api.ApiKey),
    consumer_protocol.ConsumerProtocolSubscription,
    consumer_protocol.ConsumerProtocolAssignment,
]

#: Each message with each of its versions.
PAIRS = [
    (cls, version) for cls in MESSAGES for version in range(cls.min_version, cls.max_version + 1)
]


def _integers(bits, signed=True):
    low = -(2 ** (bits - 1)) if signed else 0
    return st.integers(low, low + 2**bits - 1)


_BYTES = st.binary(max_size=8) | st.binary(min_size=125, max_size=130)

_KINDS = {
    'Bool': st.booleans(),
    'Int8': _integers(8),
    'Int16': _integers(16),
    'Int32': _integers(32),
    'Int64': _integers(64),
    'UInt16': _integers(16, signed=False),
    'UInt32': _integers(32, signed=False),
    'Float64': st.floats(allow_nan=False),
    'Uuid': st.binary(min_size=16, max_size=16),
    'String': st.text(max_size=5) | st.just('x' * 126) | st.just('y' * 127),
    'Bytes': _BYTES,
    'Records': _BYTES,
}

# Above those that upstream has used so far; its Java code knows none above 2**31 - 2.
_UNKNOWN_TAGS = st.just({}) | st.dictionaries(
    st.integers(100, 110) | st.integers(100, 2**31 - 2),
    st.binary(max_size=3),
    max_size=2,
)


def instances(cls, version):
    """Return a strategy for instances of a message that one version can carry."""
    return _struct(cls, version, cls.is_flexible(version))


@functools.lru_cache(maxsize=None)
def _struct(cls, version, flexible):
    fields = {
        field.name: _field(field, version, flexible)
        for field in cls.fields
        if field.is_on_wire(version)
    }
    absent = {f.name: f for f in cls.fields if f.required and not f.is_on_wire(version)}
    assert not absent, 'a field without a default is missing from some version'

    def build(values, tags):
        made = cls(**values)
        made.unknown_tags = tags
        return made

    tags = _UNKNOWN_TAGS if flexible else st.just({})
    return st.builds(build, st.fixed_dictionaries(fields), tags)


def _field(field, version, flexible):
    values = _value(field.type, version, flexible)
    return st.none() | values if field.is_nullable(version) else values


def _value(kind, version, flexible):
    if isinstance(kind, ListOf):
        return st.lists(_value(kind.element, version, flexible), max_size=3)
    return _KINDS[kind.name] if isinstance(kind, Kind) else _struct(kind, version, flexible)
