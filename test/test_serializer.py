"""kafka.serializer: text and JSON to bytes and back."""

from __future__ import annotations

import pytest

from kafka.serializer import DefaultSerializer, Deserializer, JsonSerializer, Serializer

TEXT, JSON = DefaultSerializer(), JsonSerializer()
VIEW = memoryview(b'x')


@pytest.mark.parametrize(
    'serializer, data, wire',
    [
        (TEXT, 'grün', b'gr\xc3\xbcn'),
        (DefaultSerializer('latin-1'), 'grün', b'gr\xfcn'),
        (TEXT, '', b''),
        (JSON, {'a': [1, None]}, b'{"a": [1, null]}'),
        (JSON, 'x', b'"x"'),
        (JSON, None, None),
        (TEXT, None, None),
    ],
)
def test_both_ways(serializer, data, wire):
    assert serializer.serialize('t', [], data) == wire
    assert serializer.deserialize('t', [], wire) == data
    if wire is not None:
        assert serializer.deserialize('t', [], memoryview(wire)) == data


@pytest.mark.parametrize('serializer', [TEXT, JSON])
@pytest.mark.parametrize('data', [b'x', bytearray(b'x'), VIEW])
def test_bytes_pass_as_they_are(serializer, data):
    assert serializer.serialize('t', [], data) is data


@pytest.mark.parametrize(
    'serializer, data, error',
    [
        (TEXT, 5, AttributeError),
        (TEXT, {}, AttributeError),
        (DefaultSerializer('ascii'), 'ü', UnicodeError),
        (JSON, object(), TypeError),
    ],
)
def test_what_cannot_be_sent(serializer, data, error):
    with pytest.raises(error):
        serializer.serialize('t', [], data)


@pytest.mark.parametrize(
    'serializer, wire', [(TEXT, b'\xff'), (JSON, b'{'), (JSON, b''), (JSON, b'\xff')]
)
def test_what_cannot_be_read(serializer, wire):
    with pytest.raises(ValueError):
        serializer.deserialize('t', [], wire)


def test_bases_have_to_be_filled_in():
    with pytest.raises(NotImplementedError):
        Serializer().serialize('t', [], b'')
    with pytest.raises(NotImplementedError):
        Deserializer().deserialize('t', [], b'')
    assert Serializer().close() is None
    assert Deserializer().close() is None
    for each in (TEXT, JSON):
        assert isinstance(each, Serializer) and isinstance(each, Deserializer)
