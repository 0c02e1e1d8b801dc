"""How programs with a KafkaProducer end: Ctrl-C in each call that blocks, and Python's own exit.

Each is a real process that talks to an embedded broker of the test's. It says when its producer is
connected, and goes on when it is told to. Ctrl-C is a real SIGINT, sent once the main thread waits.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import pytest

import kafka.producer.kafka
from kafka import KafkaProducer
from kafka.errors import IllegalStateError, KafkaTimeoutError
from kafka.testing import Cluster
from test.sources import ROOT
from test.stored import stored

PRELUDE = """
import os, signal, sys, threading, time
from kafka import KafkaProducer

main = threading.get_ident()

def connected(**options):
    made = KafkaProducer(bootstrap_servers=sys.argv[1], **options)
    made.send('t', b'first')
    made.flush(100)
    os.write(1, b'connected\\n')
    sys.stdin.readline()
    return made

def interrupt(producer):
    loop = producer._loop
    deadline = time.monotonic() + 60
    while loop._driver != main and not loop._waiting and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)

def interrupted(producer, call):
    threading.Thread(target=interrupt, args=(producer,), daemon=True).start()
    began = time.monotonic()
    try:
        call()
    except KeyboardInterrupt:
        os.write(1, b'interrupted' if time.monotonic() - began < 100 else b'late')
    else:
        os.write(1, b'nothing happened')
"""


@pytest.fixture
def cluster():
    with Cluster(version='4.4', topics={'t': 1}) as running:
        yield running


def run(program, cluster, stall=False):
    """Run a program, and return (what it said after being connected, exit code, standard error)."""
    process = subprocess.Popen(
        [
            sys.executable,
            '-W',
            'error',
            '-c',
            PRELUDE + textwrap.dedent(program),
            cluster.bootstrap,
        ],
        cwd=ROOT,
        env={**os.environ, 'PYTHONPATH': ROOT},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        said = process.stdout.readline()
        if stall:
            cluster.pause(cluster.nodes[0])
        out, err = process.communicate(b'\n', timeout=300)
    assert said == b'connected\n', err
    return out, process.returncode, err


BLOCKING = {
    'get': ("future = producer.send('t', b'v')", 'future.get(600)'),
    'get of many': ("futures = producer.send_many('t', [b'v'] * 9)", 'futures.get(600)'),
    'flush': ("producer.send('t', b'v')", 'producer.flush(600)'),
    'close': ("producer.send('t', b'v')", 'producer.close(600)'),
    'close without an end': ("producer.send('t', b'v')", 'producer.close()'),
    'send to a new topic': ('', "producer.send('new', b'v')"),
    'partitions_for': ('', "producer.partitions_for('new')"),
    'send without memory': ('', "[producer.send('t', b'x' * 900) for _ in range(1000)]"),
    'send_many without memory': ('', "producer.send_many('t', [b'x' * 900] * 1000)"),
    'send_and_forget without memory': (
        '',
        "[producer.send_and_forget('t', b'x' * 900) for _ in range(300_000)]",
    ),
}


@pytest.mark.skipif(os.name == 'nt', reason='a process of Windows cannot interrupt itself alone')
@pytest.mark.parametrize('case', BLOCKING)
def test_ctrl_c_ends_what_blocks(cluster, case):
    first, call = BLOCKING[case]
    program = """
        producer = connected(buffer_memory=100_000, max_block_ms=600_000)
        %s
        interrupted(producer, lambda: %s)
        producer.close(timeout=0)
    """
    out, code, err = run(program % (first, call), cluster, stall=True)
    assert (out, code) == (b'interrupted', 0), err


@pytest.mark.skipif(os.name == 'nt', reason='a process of Windows cannot interrupt itself alone')
def test_a_producer_goes_on_after_ctrl_c(cluster):
    program = """
        producer = connected(linger_ms=600_000, delivery_timeout_ms=700_000)
        future = producer.send('t', b'before')
        interrupted(producer, lambda: future.get(600))
        producer.send('t', b'after')
        producer.flush(600)
        os.write(1, b' %d' % future.get(0).offset)
    """
    out, code, err = run(program, cluster)
    assert (out, code) == (b'interrupted 1', 0), err
    assert stored(cluster)[1:] == [b'before', b'after']


@pytest.mark.skipif(os.name == 'nt', reason='a process of Windows cannot interrupt itself alone')
def test_a_handler_of_a_signal_may_flush_and_close_where_the_program_waits(cluster):
    program = """
        producer = connected(linger_ms=600_000, delivery_timeout_ms=700_000)

        def stop(number, frame):
            producer.send('t', b'of the handler')
            producer.flush(600)
            producer.close(600)
            sys.exit(7)

        def tell_to_end():
            while producer._loop._driver != main:
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGTERM)

        signal.signal(signal.SIGTERM, stop)
        threading.Thread(target=tell_to_end, daemon=True).start()
        producer.send('t', b'of the program').get(600)
        os.write(1, b'never')
    """
    out, code, err = run(program, cluster)
    assert (out, code) == (b'', 7), err
    assert stored(cluster)[1:] == [b'of the program', b'of the handler']


@pytest.mark.parametrize('end', ['', 'sys.exit(3)', 'raise ValueError'])
def test_what_was_not_sent_is_sent_at_the_end(cluster, end):
    program = """
        producer = connected(linger_ms=600_000, delivery_timeout_ms=700_000)
        for n in range(50):
            producer.send('t', b'%%d' %% n)
        for n in range(50, 100):
            producer.send_and_forget('t', b'%%d' %% n)
        %s
    """
    out, code, err = run(program % end, cluster)
    assert code == {'': 0, 'sys.exit(3)': 3}.get(end, 1), err
    assert b'lost' not in err
    assert stored(cluster)[1:] == [b'%d' % n for n in range(100)]


def test_the_end_does_not_wait_for_ever_and_says_what_may_be_lost(cluster):
    program = """
        producer = connected()
        for n in range(7):
            producer.send('t', b'v')
            producer.send_and_forget('t', b'v')
    """
    out, code, err = run(program, cluster, stall=True)
    assert code == 0
    assert b'14 records were not acknowledged and may be lost' in err


COLLECTED = """
    producer = connected(linger_ms=600_000, delivery_timeout_ms=700_000)
    producer.send('t', b'v')
    producer.send_and_forget('t', b'w')
    del producer
    os.write(1, b'gone')
    os._exit(7)
"""


def test_a_producer_that_is_collected_sends_what_it_has(cluster):
    """As in 2.x and 3.x, whose programs make a producer in a function and leave it to Python."""
    assert run(COLLECTED, cluster) == (b'gone', 7, b'')
    assert stored(cluster, 't') == [b'first', b'v', b'w']


def test_a_producer_that_is_collected_says_what_may_be_lost(cluster):
    out, code, err = run(COLLECTED, cluster, stall=True)
    assert (out, code) == (b'gone', 7)
    assert b'2 records were not acknowledged and may be lost' in err


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='this system has no fork')
def test_the_end_of_a_forked_child_is_about_its_own_producers(cluster):
    """Its parent's is not looked at, and what its own one has is sent."""
    program = """
        import warnings
        warnings.simplefilter('ignore')  # Python since 3.12 warns of forks beside threads
        producer = connected()
        child = os.fork()
        if not child:
            own = KafkaProducer(bootstrap_servers=sys.argv[1], linger_ms=600_000)
            own.send('t', b'of the child')
            sys.exit(3)
        os.write(1, b'%d' % os.WEXITSTATUS(os.waitpid(child, 0)[1]))
    """
    assert run(program, cluster) == (b'3', 0, b'')
    assert stored(cluster, 't') == [b'first', b'of the child']


@pytest.mark.parametrize(
    'program',
    [
        """
        producer = connected(linger_ms=600_000, delivery_timeout_ms=700_000)
        for partition in range(3):
            producer.send('t', b'last', partition=partition)
        """,
        """
        connected().close()

        @atexit.register
        def send():
            with KafkaProducer(bootstrap_servers=sys.argv[1]) as producer:
                for partition in range(3):
                    producer.send('t', b'last', partition=partition)
        """,
    ],
    ids=['not connected yet', 'made at the end'],
)
def test_the_end_needs_no_thread_to_look_up_a_name(program):
    """Python 3.12 starts none once the main thread has ended."""
    prelude = """
        import atexit

        def refuse(thread):
            raise RuntimeError("can't create new thread at interpreter shutdown")
    """
    refuse = """
        atexit.register(setattr, threading.Thread, 'start', refuse)
    """
    with Cluster(3, version='4.4', host='localhost', topics={'t': 3}) as cluster:
        out, code, err = run(prelude + program + refuse, cluster)
        assert (out, code, err) == (b'', 0, b'')
        kept = [stored(cluster, 't', partition)[-1:] for partition in range(3)]
    assert kept == [[b'last']] * 3


def test_a_flush_that_two_threads_look_after_waits_for_every_batch(cluster, monkeypatch):
    """The thread that waits and the one that runs the loop ask at once whether it is over."""

    class Pending:
        is_done = False

    class Asking:
        """Asked by one thread, it lets the other one ask in between."""

        is_asked = False

        @property
        def is_done(self):
            if not self.is_asked:
                self.is_asked = True
                told.append(asks[0]())
            return True

    def wait(ask, seconds, first):
        asks.append(ask)
        told.append(ask())
        return True

    told, asks = [], []
    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
        batches = [Asking(), Pending()]
        monkeypatch.setattr(producer._accumulator, 'begin_flush', lambda now: batches)
        monkeypatch.setattr(producer._loop, 'wait', wait)
        producer.flush()
        monkeypatch.undo()
    assert told == [False, False]


class Left:
    """A producer that was not closed; Ctrl-C comes while it is."""

    def __init__(self, told):
        self._accumulator = self
        self.told = told

    def close(self, timeout=None):
        self.told.append(timeout)
        if timeout is not None:
            raise KeyboardInterrupt


def test_ctrl_c_at_the_end_closes_the_others_without_waiting(monkeypatch):
    """All of them are let send what they have before the first is waited for."""
    told = []
    left = [Left(told) for _ in range(3)]
    monkeypatch.setattr(kafka.producer.kafka, '_open', weakref.WeakSet(left))
    with pytest.raises(KeyboardInterrupt):
        kafka.producer.kafka._close_all()
    assert told[:3] == [None] * 3
    assert told[3] > 1 and told[4:] == [0.0, 0.0]


def test_a_producer_that_another_thread_makes_at_the_end_keeps_none_from_being_closed(monkeypatch):
    class Open(weakref.WeakSet):
        """Another thread adds to it whenever code of Python runs in it."""

        def __iter__(self):
            for each in super().__iter__():
                later.append(Left([]))
                self.add(later[-1])
                yield each

    told, later = [], []
    left = [Left(told) for _ in range(3)]
    monkeypatch.setattr(kafka.producer.kafka, '_open', Open(left))
    with pytest.raises(KeyboardInterrupt):
        kafka.producer.kafka._close_all()
    assert told[:3] == [None] * 3 and len(told) == 6


def test_a_producer_whose_loop_was_torn_can_be_closed():
    producer = KafkaProducer(bootstrap_servers='127.0.0.1:1', api_version=(2, 1))
    producer._loop._mark_interrupted(KeyboardInterrupt())
    producer.close(timeout=1)


def test_a_producer_that_is_out_of_order_keeps_no_other_from_being_closed(monkeypatch, caplog):
    class Broken(Left):
        def close(self, timeout=None):
            raise IllegalStateError('torn')

    told = []
    left = [Broken(told), Left(told)]
    monkeypatch.setattr(kafka.producer.kafka, '_open', weakref.WeakSet(left))
    with pytest.raises(KeyboardInterrupt):
        kafka.producer.kafka._close_all()
    assert len(told) == 2 and 'torn' in caplog.text


def test_a_producer_that_is_closed_in_the_middle_of_a_call_takes_nothing_more(cluster):
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap)
    append = producer._engine.append_waiting

    def append_and_close(*arguments):
        placed = append(*arguments)
        producer.close(timeout=0)
        return placed

    producer._engine.append_waiting = append_and_close
    with pytest.raises(IllegalStateError):
        producer.send('t', b'first').get(10)
    with pytest.raises(IllegalStateError):
        producer.send('t', b'second')


def test_ctrl_c_in_close_leaves_no_future_without_an_outcome(cluster, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, linger_ms=600_000)
    future = producer.send('t', b'v')
    monkeypatch.setattr(producer._loop, 'wait', interrupted)
    with pytest.raises(KeyboardInterrupt):
        producer.close()
    with pytest.raises(IllegalStateError, match='closed before the record was acknowledged'):
        future.get(10)
    assert producer._loop._closing and len(producer) == 0


def test_all_is_closed_although_a_serializer_cannot_be(cluster):
    closed = []

    class Broken:
        def serialize(self, topic, data):
            return data

        def close(self):
            closed.append(self)
            raise ZeroDivisionError

    key, value = Broken(), Broken()
    made = KafkaProducer(
        bootstrap_servers=cluster.bootstrap, key_serializer=key, value_serializer=value
    )
    with pytest.raises(ZeroDivisionError):
        made.close()
    made.close()
    assert closed == [key, value]


class Closes:
    """A producer that a thread is just closing, whose only record no broker takes until resume().

    Attributes: future: of the record; thread.
    """

    def __init__(self, cluster, monkeypatch, **options):
        self.cluster = cluster
        self.producer = producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, **options)
        monkeypatch.setattr(kafka.producer.kafka, '_open', weakref.WeakSet([producer]))
        producer.send('t', b'first').get(30)
        cluster.pause(cluster.nodes[0])
        self.future = producer.send('t', b'v')
        self.thread = threading.Thread(target=producer.close)
        self.thread.start()
        while not producer._closed:
            time.sleep(0.001)

    def resume(self):
        self.cluster.resume(self.cluster.nodes[0])
        self.thread.join(30)
        assert self.future.succeeded()


WAITING = {
    'close': lambda producer: producer.close(),
    'flush': lambda producer: producer.flush(),
    'the end': lambda producer: kafka.producer.kafka._close_all(),
}


@pytest.mark.parametrize('case', WAITING)
def test_others_wait_for_the_thread_that_closes(cluster, monkeypatch, case):
    """At the end of the interpreter that may be a daemon thread, which nobody else waits for."""
    closes, told = Closes(cluster, monkeypatch), []

    def wait():
        WAITING[case](closes.producer)
        told.append(closes.future.is_done)

    waits = threading.Thread(target=wait)
    waits.start()
    waits.join(0.1)
    closes.resume()
    waits.join(30)
    assert told == [True]
    assert not kafka.producer.kafka._open, 'nobody has to close it any more'


def test_others_wait_no_longer_than_they_want_for_the_thread_that_closes(
    cluster, monkeypatch, caplog
):
    closes = Closes(cluster, monkeypatch)
    closes.producer.close(timeout=0)
    closes.producer.close(timeout=0.01)
    with pytest.raises(KafkaTimeoutError, match='another thread is closing'):
        closes.producer.flush(0.01)
    monkeypatch.setattr(kafka.producer.kafka, '_EXIT_SECONDS', 0.01)
    kafka.producer.kafka._close_all()
    assert '1 records may be lost' in caplog.text
    closes.resume()
    closes.producer.close()
    closes.producer.flush()


def test_nobody_waits_for_a_close_that_an_exception_has_ended_before_it_said_so(cluster):
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap)

    def cut():
        call = producer._closing.new_call()
        assert producer._closing.is_first(call)
        producer._closed = True
        producer._close(1.0)  # and here the exception comes, before the end is told

    closing = threading.Thread(target=cut)
    closing.start()
    closing.join(10)
    began = time.monotonic()
    producer.close(30)
    producer.flush(30)
    kafka.producer.kafka._close_producer(producer, began)
    assert time.monotonic() - began < 10


def test_a_close_that_would_wait_for_itself_returns_at_once(cluster, monkeypatch):
    closes, told = Closes(cluster, monkeypatch, key_serializer=Reentrant()), []
    producer = closes.producer

    def in_turn(error):
        producer.close()
        producer.flush()
        told.append('callback')

    closes.future.add_callback(in_turn)
    with monkeypatch.context() as inside:
        inside.setattr(producer._accumulator, 'is_inside', lambda: True)
        producer.close()
        producer.flush()
    producer.config['key_serializer'].calls += [producer.close, producer.flush]
    closes.resume()
    assert told == ['callback'] and not producer.config['key_serializer'].calls


class Reentrant:
    """A serializer that makes calls when it is closed."""

    def __init__(self):
        self.calls = []

    def serialize(self, topic, data):
        return data

    def close(self):
        while self.calls:
            self.calls.pop()()


def test_of_two_threads_that_close_at_once_one_does(cluster, monkeypatch):
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap)
    accumulator, closed, others = producer._accumulator, [], []
    check, close = accumulator.check_outside, accumulator.close

    def check_while_another_closes():
        monkeypatch.setattr(accumulator, 'check_outside', check)
        others.append(threading.Thread(target=producer.close))
        others[0].start()
        others[0].join(30)

    def close_once(**how):
        closed.append(how)
        close(**how)

    monkeypatch.setattr(accumulator, 'check_outside', check_while_another_closes)
    monkeypatch.setattr(accumulator, 'close', close_once)
    producer.close()
    assert len(closed) == 1


EXITS = {
    'get': "future = producer.send('t', b'v'); future.get(600)",
    'flush': "producer.send('t', b'v'); producer.flush(600)",
    'partitions_for': "producer.partitions_for('new')",
    'send without memory': "[producer.send('t', b'x' * 900) for _ in range(1000)]",
    'with': "with producer: producer.partitions_for('new')",
}


@pytest.mark.skipif(os.name == 'nt', reason='a process of Windows cannot send itself SIGTERM')
@pytest.mark.parametrize('case', EXITS)
def test_a_handler_that_closes_and_exits_while_a_call_waits_ends_the_program(cluster, case):
    program = """
        producer = connected(buffer_memory=100_000, max_block_ms=600_000)

        def stop(number, frame):
            producer.close(timeout=0)
            sys.exit(3)

        signal.signal(signal.SIGTERM, stop)
        signal.SIGINT = signal.SIGTERM  # for interrupt()
        threading.Thread(target=interrupt, args=(producer,), daemon=True).start()
        %s
    """
    out, code, err = run(program % EXITS[case], cluster, stall=True)
    assert (out, code) == (b'', 3), err
    assert b'Traceback' not in err


def test_a_serializer_that_cannot_be_closed_does_not_hide_the_error_of_a_block(cluster, caplog):
    class Broken:
        def serialize(self, topic, data):
            return data

        def close(self):
            raise ZeroDivisionError

    with pytest.raises(SystemExit), KafkaProducer(
        bootstrap_servers=cluster.bootstrap, value_serializer=Broken()
    ):  # fmt: skip
        sys.exit(3)
    assert 'ZeroDivisionError' in caplog.text
