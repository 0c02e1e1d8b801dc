"""kafka.util: sized strings, grouping, the bytes boundary, the timer."""

from __future__ import annotations

import gc
import logging
import struct
import threading
import weakref
import zlib
from fractions import Fraction
from typing import NamedTuple
from unittest.mock import Mock

import pytest
import six

from kafka import util
from kafka.errors import BufferUnderflowError, ProtocolError
from kafka.util import WeakMethod


class Item(NamedTuple):
    topic: str
    partition: int
    value: int = 0


@pytest.mark.parametrize(
    'write, value, wire',
    [
        (util.write_int_string, b'some string', b'\x00\x00\x00\x0bsome string'),
        (util.write_int_string, b'', b'\x00\x00\x00\x00'),
        (util.write_int_string, None, b'\xff\xff\xff\xff'),
        (util.write_short_string, b'some string', b'\x00\x0bsome string'),
        (util.write_short_string, b'', b'\x00\x00'),
        (util.write_short_string, None, b'\xff\xff'),
    ],
)
def test_writers(write, value, wire):
    assert write(value) == wire


@pytest.mark.parametrize('write', [util.write_int_string, util.write_short_string])
@pytest.mark.parametrize('value', ['some string', 1, ['x'], bytearray(b'x')])
def test_writers_refuse_what_is_not_bytes_and_name_its_type(write, value):
    with pytest.raises(TypeError) as caught:
        write(value)
    assert type(value).__name__ in str(caught.value)
    assert 'to be bytes' in str(caught.value)


def test_a_short_string_ends_at_32767_bytes():
    assert len(util.write_short_string(b' ' * 32767)) == 32769
    with pytest.raises(struct.error):
        util.write_short_string(b' ' * 32768)


@pytest.mark.parametrize(
    'read, data, cur, result',
    [
        (util.read_int_string, b'\x00\x00\x00\x0bsome string', 0, (b'some string', 15)),
        (util.read_int_string, b'\xff\xff\xff\xff', 0, (None, 4)),
        (util.read_int_string, b'\x00\x00\x00\x00', 0, (b'', 4)),
        (util.read_int_string, b'xx\x00\x00\x00\x01ab', 2, (b'a', 7)),
        (util.read_short_string, b'\x00\x0bsome string', 0, (b'some string', 13)),
        (util.read_short_string, b'\xff\xff', 0, (None, 2)),
        (util.read_short_string, b'\x00\x00', 0, (b'', 2)),
    ],
)
def test_readers(read, data, cur, result):
    assert read(data, cur) == result


@pytest.mark.parametrize(
    'read, data',
    [
        (util.read_int_string, b'\x00\x00\x00\x021'),
        (util.read_int_string, b'\x00\x00\x00'),
        (util.read_int_string, b''),
        (util.read_short_string, b'\x00\x021'),
        (util.read_short_string, b'\x00'),
        # Lengths are checked before types.
        (util.read_int_string, '\x00\x021'),
        (util.read_short_string, 'x'),
    ],
)
def test_readers_underflow(read, data):
    with pytest.raises(BufferUnderflowError):
        read(data, 0)


def test_readers_refuse_a_length_below_minus_one():
    with pytest.raises(ProtocolError):
        util.read_int_string(b'\xff\xff\xff\xfe1234', 0)
    with pytest.raises(ProtocolError):
        util.read_short_string(b'\x80\x001234', 0)


def test_relative_unpack():
    assert util.relative_unpack('>hh', b'\x00\x01\x00\x00\x02', 0) == ((1, 0), 4)
    assert util.relative_unpack('>h', b'\x00\x01\x00\x03', 2) == ((3,), 4)
    for data in (b'\x00', '\x00'):
        with pytest.raises(BufferUnderflowError):
            util.relative_unpack('>hh', data, 0)


def test_group_by_topic_and_partition_keeps_the_order():
    items = [Item('b', 1), Item('a', 1), Item('b', 0)]
    grouped = util.group_by_topic_and_partition(items)
    assert grouped == {'b': {1: items[0], 0: items[2]}, 'a': {1: items[1]}}
    assert list(grouped) == ['b', 'a'] and list(grouped['b']) == [1, 0]
    assert util.group_by_topic_and_partition(iter([])) == {}


def test_group_by_topic_and_partition_refuses_a_repeated_pair():
    with pytest.raises(AssertionError):
        util.group_by_topic_and_partition([Item('a', 1), Item('a', 1, 5)])


def test_crc32_is_unsigned():
    assert util.crc32(b'test') == zlib.crc32(b'test')
    assert util.crc32(b'\xff' * 9) >= 0


def test_kafka_bytestring():
    assert util.kafka_bytestring(b'a\xff') == b'a\xff'
    assert util.kafka_bytestring(six.u('\xe9')) == b'\xc3\xa9'
    for wrong in (1, None, bytearray(b'a')):
        with pytest.raises(TypeError) as caught:
            util.kafka_bytestring(wrong)
        assert caught.value.args == (wrong,)


class OldClient:
    """Answers every attribute, as a stand-in does."""

    def __getattr__(self, name):
        return True


class NewClient:
    names_as_given = True


def test_names_become_bytes_whatever_a_stand_in_says():
    assert util.name_for(OldClient(), 'topic') == b'topic'
    assert util.name_for(object(), b'topic') == b'topic'


def test_names_stay_as_given_where_the_clients_class_says_so():
    assert util.name_for(NewClient(), 'topic') == 'topic'


@pytest.mark.parametrize('stand_in', [weakref.proxy, lambda client: Mock(spec=type(client))])
def test_what_passes_for_a_client_is_asked_for_the_clients_class(stand_in):
    client = NewClient()
    assert util.name_for(stand_in(client), 'topic') == 'topic'
    client = OldClient()
    assert util.name_for(stand_in(client), 'topic') == b'topic'


def test_a_name_of_a_wrong_type_is_refused_by_the_name_of_its_argument():
    with pytest.raises(TypeError, match='group must be str or bytes, not int: 5'):
        util.name_for(object(), 5, 'group')


def test_a_name_that_is_no_text_is_refused_by_the_name_of_its_argument():
    """A lone surrogate has no UTF-8; Python's own words would not say which argument had it."""
    with pytest.raises(ValueError, match='group cannot be written as UTF-8') as caught:
        util.name_for(object(), 'a\ud800', 'group')
    assert '\\ud800' in str(caught.value)


@pytest.mark.parametrize('wrong', ['5', None, [5], b'5', 5j])
def test_what_is_no_number_is_refused_by_the_name_of_its_argument(wrong):
    with pytest.raises(TypeError, match='pause must be a number, not %s' % type(wrong).__name__):
        util.check_number(wrong, 'pause')


@pytest.mark.parametrize('number', [5, 0.5, float('inf'), True, Fraction(1, 2)])
def test_numbers_are_taken_whatever_their_type(number):
    util.check_number(number, 'pause')


def test_timer_refuses_what_it_cannot_do():
    for t in (0, -1):
        with pytest.raises(ValueError):
            util.ReentrantTimer(t, print)
    with pytest.raises(ValueError):
        util.ReentrantTimer(1, None)
    with pytest.raises(ValueError):
        util.ReentrantTimer(float('nan'), print)
    with pytest.raises(TypeError, match='t must be ms'):
        util.ReentrantTimer('1', print)


class Calls:
    """A function that remembers its calls and says when enough came."""

    def __init__(self, enough):
        self.seen = []
        self.enough = enough
        self.reached = threading.Event()

    def __call__(self, *args, **kwargs):
        self.seen.append((args, kwargs))
        if len(self.seen) >= self.enough:
            self.reached.set()


def test_timer_calls_again_and_again_until_stopped():
    calls = Calls(3)
    timer = util.ReentrantTimer(1, calls, 1, x=2)
    assert timer.t == 0.001
    timer.start()
    thread = timer.thread
    assert thread.daemon
    assert calls.reached.wait(5)
    timer.stop()
    assert not thread.is_alive()
    assert calls.seen[0] == ((1,), {'x': 2})
    timer.stop()


def test_timer_can_be_started_again_and_goes_on_calling():
    calls = Calls(1)
    timer = util.ReentrantTimer(1, calls)
    for _ in range(2):
        calls.reached.clear()
        timer.start()
        assert calls.reached.wait(5)
        timer.stop()


def test_starting_a_running_timer_stops_the_old_thread():
    timer = util.ReentrantTimer(50000, print)
    timer.start()
    first = timer.thread
    timer.start()
    assert not first.is_alive() and timer.thread.is_alive()
    timer.stop()


def test_cancelling_a_timer_ends_its_thread_and_waits_for_no_lock():
    timer = util.ReentrantTimer(50000, print)
    timer.start()
    thread = timer.thread
    with threading._active_limbo_lock:
        timer.cancel()
        timer.cancel()
    thread.join(5)
    assert not thread.is_alive()


def test_stop_is_harmless_when_never_started():
    util.ReentrantTimer(1, print).stop()


def test_a_timed_call_may_stop_its_own_timer():
    done = threading.Event()
    threads = []  # its own word: it may have let go of the thread before start() returns

    def call():
        threads.append(threading.current_thread())
        timer.stop()
        done.set()

    timer = util.ReentrantTimer(1, call)
    timer.start()
    assert done.wait(5)
    (thread,) = threads
    thread.join(5)
    assert not thread.is_alive()


@pytest.mark.parametrize('t', [float('inf'), 2**63 - 1])
def test_an_interval_longer_than_threads_can_wait_is_never_over(t):
    called = []
    timer = util.ReentrantTimer(t, called.append, 1)
    timer.start()
    thread = timer.thread
    thread.join(0.05)
    assert thread.is_alive()
    timer.stop()
    assert not thread.is_alive()
    assert called == []


def test_a_failing_call_is_logged_and_the_timer_goes_on(caplog):
    calls = Calls(2)

    def fail():
        calls()
        raise RuntimeError('no luck')

    timer = util.ReentrantTimer(1, fail)
    with caplog.at_level(logging.ERROR):
        timer.start()
        assert calls.reached.wait(5)
        timer.stop()
    assert 'no luck' in caplog.text


# --- text mode ----------------------------------------------------------------------------------


@pytest.fixture
def text_mode():
    """Switch text mode; off again afterwards."""
    yield util.set_text_mode
    util.set_text_mode(None)


def test_text_is_left_alone_unless_text_mode_is_on(text_mode):
    assert util.text_bytes('a', 'key') is None
    text_mode('utf-8')
    text_mode(None)
    assert util.text_bytes('a', 'key') is None


@pytest.mark.parametrize(
    'encoding, text, wire',
    [('utf-8', 'é', b'\xc3\xa9'), ('latin-1', 'é', b'\xe9'), ('utf-8', '', b'')],
)
def test_text_mode_encodes_text(text_mode, encoding, text, wire):
    text_mode(encoding)
    assert util.text_bytes(text, 'key') == wire


@pytest.mark.parametrize('value', [b'a', bytearray(b'a'), None, 5, ['a']])
def test_text_mode_is_about_text_only(text_mode, value):
    text_mode('utf-8')
    assert util.text_bytes(value, 'key') is None


def test_text_mode_is_told_once_with_its_switches(text_mode, caplog):
    text_mode('latin-1')
    assert caplog.records == []
    util.text_bytes('a', 'key')
    util.text_bytes('b', 'key')
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    for word in ('latin-1', 'KAFKA_LEGACY_TEXT', 'kafka.util.set_text_mode', '--no-text'):
        assert word in record.getMessage()


@pytest.mark.parametrize(
    'encoding, text', [('ascii', 'secret é'), ('utf-8', 'secret \udc80'), ('latin-1', 'secret €')]
)
def test_text_without_bytes_is_refused_by_name_and_not_shown(text_mode, encoding, text):
    text_mode(encoding)
    with pytest.raises(ValueError, match='key cannot be written as %s' % encoding) as caught:
        util.text_bytes(text, 'key')
    assert 'secret' not in str(caught.value)
    assert 'at character 7' in str(caught.value)


@pytest.mark.parametrize('encoding', ['utf-99', 'hex', 'rot13', '', 'a\0b'])
def test_unknown_encoding_is_refused_and_changes_nothing(text_mode, encoding):
    text_mode('latin-1')
    with pytest.raises(ValueError, match='not an encoding of text'):
        text_mode(encoding)
    assert util.text_bytes('é', 'key') == b'\xe9'


def test_encoding_of_another_type_is_refused(text_mode):
    with pytest.raises(TypeError):
        text_mode(8)


@pytest.mark.parametrize(
    'value, outcome', [('latin-1', b'\xe9'), ('', None), (None, None), ('utf-99', ValueError)]
)
def test_text_mode_is_set_by_the_environment(text_mode, monkeypatch, value, outcome):
    if value is None:
        monkeypatch.delenv('KAFKA_LEGACY_TEXT', raising=False)
    else:
        monkeypatch.setenv('KAFKA_LEGACY_TEXT', value)
    if outcome is ValueError:
        with pytest.raises(ValueError, match='environment variable KAFKA_LEGACY_TEXT: .*utf-99'):
            util._set_text_mode_from_environment()
    else:
        util._set_text_mode_from_environment()
        assert util.text_bytes('é', 'key') == outcome


# --- methods that keep no object alive ----------------------------------------------------------


class Counter:
    def __init__(self):
        self.calls = []

    def note(self, *args, **kwargs):
        self.calls.append((args, kwargs))
        return 'noted'

    def other(self):
        pass


def test_weak_method_is_called_as_the_method_is():
    counter = Counter()
    assert WeakMethod(counter.note)(1, a=2) == 'noted'
    assert counter.calls == [((1,), {'a': 2})]


def test_weak_methods_are_equal_by_object_and_function():
    one, two = Counter(), Counter()
    assert WeakMethod(one.note) == WeakMethod(one.note)
    assert hash(WeakMethod(one.note)) == hash(WeakMethod(one.note))
    assert WeakMethod(one.note) != WeakMethod(two.note)
    assert WeakMethod(one.note) != WeakMethod(one.other)
    assert WeakMethod(one.note) != one.note


def test_weak_method_lets_its_object_go():
    counter = Counter()
    method = WeakMethod(counter.note)
    del counter
    gc.collect()
    with pytest.raises(ReferenceError):
        method()
