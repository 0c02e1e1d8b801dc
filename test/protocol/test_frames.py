"""Frames: cut anywhere, bounded, and clear about peers that do not speak Kafka."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.errors import FrameError, KafkaConnectionError, ProtocolError
from kafka.protocol import frames
from kafka.protocol.frames import DEFAULT_MAX_FRAME_BYTES, FrameReader, frame


def frames_of(reader):
    return list(iter(reader.next_frame, None))


def test_frame_is_the_length_and_the_bytes():
    assert frame(b'abc') == (
        b'\x00\x00\x00\x03'  # length
        b'abc'
    )


@given(st.lists(st.binary(max_size=20)), st.lists(st.integers(1, 9)))
def test_frames_come_out_whole_however_the_stream_is_cut(bodies, cuts):
    stream = b''.join(map(frame, bodies))
    reader, got = FrameReader(), []
    for size in cuts + [len(stream)]:
        reader.receive_data(stream[:size])
        stream = stream[size:]
        got += frames_of(reader)
    assert got == bodies
    assert not reader.inside_frame


@given(st.lists(st.binary(max_size=20), min_size=1), st.integers(1, 7))
def test_a_driver_that_reads_what_is_missing_never_reads_into_the_next_frame(bodies, most):
    stream = b''.join(map(frame, bodies))
    reader = FrameReader()
    for body in bodies:
        got = None
        while got is None:
            count = min(reader.missing_bytes, most)
            reader.receive_data(stream[:count])
            stream = stream[count:]
            got = reader.next_frame()
        assert got == body
    assert stream == b''


@given(
    st.lists(st.binary(max_size=20)),
    st.lists(st.tuples(st.integers(1, 9), st.booleans(), st.sampled_from([bytes, memoryview]))),
    st.integers(1, 5),
)
def test_frames_come_out_whole_whatever_pieces_are_kept(bodies, cuts, large):
    """With a limit from which on pieces are large that is as small as the pieces are here."""
    stream = b''.join(map(frame, bodies))
    reader, got, there = FrameReader(), [], 0
    before, frames.LARGE_PIECE_BYTES = frames.LARGE_PIECE_BYTES, large
    try:
        for size, looks, kind in [*cuts, (len(stream), True, bytes)]:
            reader.receive_data(kind(stream[:size]))
            there += len(stream[:size])
            stream = stream[size:]
            if looks:
                some = frames_of(reader)
                there -= sum(len(body) + 4 for body in some)
                got += some
            assert reader.buffered_bytes == there
    finally:
        frames.LARGE_PIECE_BYTES = before
    assert got == bodies
    assert not reader.inside_frame


def test_a_long_frame_is_put_together_of_large_pieces_and_of_small_ones():
    reader, piece = FrameReader(), bytes(20000)
    body = piece + b'x' * 1000 + piece
    assert reader.take(frame(body)[:100]) is None
    assert reader.take(body[96:100]) is None
    assert reader.take(piece) is None and reader.inside_frame
    for _ in range(1000):
        assert reader.take(b'x') is None
    assert reader.buffered_bytes == 21104
    assert reader.missing_bytes == len(body) - 21100
    assert reader.take(piece) == body[:100] + piece + b'x' * 1000 + piece[:-100]
    assert reader.buffered_bytes == 100


def test_missing_bytes_first_asks_for_the_length_then_for_the_body():
    reader = FrameReader()
    assert reader.missing_bytes == 4
    reader.receive_data(b'\x00\x00')
    assert reader.missing_bytes == 2
    reader.receive_data(b'\x00\x05')
    assert (reader.missing_bytes, reader.next_frame(), reader.missing_bytes) == (0, None, 5)
    reader.receive_data(b'ab')
    assert (reader.missing_bytes, reader.inside_frame) == (3, True)


@pytest.mark.parametrize(
    ('head', 'told'),
    [
        (b'HTTP/1.1 400 Bad Request', 'HTTP answer'),
        (b'GET / HTTP/1.1', 'HTTP request'),
        (b'\x15\x03\x03\x00\x02', 'TLS alert'),
        (b'\x16\x03\x01\x02\x00', 'TLS handshake'),
        (b'SSH-2.0-OpenSSH', 'SSH'),
        (b'220 mail.example', 'mail'),
        (b'\xff\xff\xff\xff', 'negative length (-1)'),
        (b'\x80\x00\x00\x00', 'negative length (-2147483648)'),
        (b'\x7f\xff\xff\xff', '2147483647 bytes; the limit is 104857600'),
    ],
)
def test_an_impossible_length_is_refused_with_what_it_probably_is(head, told):
    reader = FrameReader()
    reader.receive_data(head)
    with pytest.raises(FrameError) as caught:
        reader.next_frame()
    assert told in str(caught.value)
    assert isinstance(caught.value, (KafkaConnectionError, ProtocolError))


def test_the_limit_itself_is_allowed():
    reader = FrameReader(max_frame_bytes=3)
    reader.receive_data(frame(b'abc'))
    assert reader.next_frame() == b'abc'
    reader.receive_data(frame(b'abcd'))
    with pytest.raises(FrameError):
        reader.next_frame()


def test_the_default_limit_is_that_of_brokers():
    assert DEFAULT_MAX_FRAME_BYTES == 100 * 1024 * 1024


def test_a_good_frame_before_an_impossible_length_is_delivered():
    reader = FrameReader()
    reader.receive_data(frame(b'good') + b'\xff\xff\xff\xff')
    assert reader.next_frame() == b'good'
    with pytest.raises(FrameError):
        reader.next_frame()


def test_an_announced_length_takes_no_memory():
    reader = FrameReader()
    reader.receive_data(DEFAULT_MAX_FRAME_BYTES.to_bytes(4, 'big'))
    assert reader.next_frame() is None
    assert reader.__sizeof__() + reader._buffer.__sizeof__() < 1000


def test_a_long_frame_takes_at_most_twice_the_memory_of_what_has_come(monkeypatch):
    monkeypatch.setattr(frames, 'LARGE_PIECE_BYTES', 10)
    monkeypatch.setattr(frames, 'LARGE_FRAME_BYTES', 100)
    reader, body = FrameReader(), bytes(range(250)) * 40
    stream, most = frame(body), []
    for start in range(0, len(stream), 30):
        assert reader.take(stream[start : start + 30]) == (
            None if start + 30 < len(stream) else body
        )
        if reader.inside_frame:
            held = len(reader._large.getbuffer()) if reader._large else 0
            assert held <= min(len(body), max(100, 2 * (start + 30)))
            most.append(held)
    assert sorted(set(most)) == [0, 100, 200, 400, 800, 1600, 3200, 6400, 10000]


@pytest.mark.parametrize('data', [None, '', 'text', 5, [1, 2]])
def test_only_bytes_are_received(data):
    """A list of numbers would be taken for bytes, and what is empty for the end."""
    with pytest.raises(TypeError, match='data must be bytes, not %s' % type(data).__name__):
        FrameReader().receive_data(data)


def test_repr_tells_how_much_is_there_and_missing():
    reader = FrameReader()
    reader.receive_data(b'\x00')
    assert repr(reader) == '<FrameReader buffered=1 missing=3>'


@pytest.mark.parametrize('pieces', [[b'\0\0\0\x03abc'], [b'\0\0', b'\0\x03a', b'bc']])
def test_take_adds_and_returns_the_next_frame(pieces):
    reader = FrameReader()
    assert [reader.take(piece) for piece in pieces] == [None] * (len(pieces) - 1) + [b'abc']
    assert (reader.buffered_bytes, reader.missing_bytes) == (0, 4)


def test_take_does_not_take_a_piece_of_a_long_frame_for_a_frame():
    reader = FrameReader()
    body = bytes(20000) + frame(bytes(20000))
    for piece in (frame(body)[:4], body[:20000]):
        assert reader.take(piece) is None
    assert reader.take(body[20000:]) == body


def test_take_keeps_what_follows_a_frame():
    reader = FrameReader()
    assert reader.take(b'\0\0\0\x01a\0\0\0\x01b') == b'a'
    assert reader.next_frame() == b'b'


@pytest.mark.parametrize('data', [b'\0\0\0\x05abcde', b'\xff\xff\xff\xffa', b'HTTP/1.1'])
def test_take_refuses_what_next_frame_refuses(data):
    with pytest.raises(FrameError):
        FrameReader(4).take(data)
