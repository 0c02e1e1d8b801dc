"""How programs with an asynchronous producer end, and what is sent then: each a real process.

The client of these programs writes to standard output what it is asked to send. Nothing may be lost
in an end that runs Python's own exit, whichever thread or process it is in.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap

import pytest

from test.sources import ROOT

PRELUDE = """
import multiprocessing, os, signal, sys, threading, time
from kafka.errors import FailedPayloadsError
from kafka.producer import SimpleProducer
from test.fake_client import FakeClient

class Client(FakeClient):
    down = False

    def send_produce_request(self, payloads, **options):
        if self.down:
            return [FailedPayloadsError(payload) for payload in payloads]
        for payload in payloads:
            for message in payload.messages:
                os.write(1, message.value + b' ')
        return super().send_produce_request(payloads, **options)

client = Client()

def new(**options):
    return SimpleProducer(client, async_send=True, **options)
"""


def run(program, interrupt=False):
    """Run a program, and return (what it sent in order, its exit code, its standard error).

    With `interrupt` it gets Ctrl-C when it has written a line to standard error.
    """
    process = subprocess.Popen(
        [sys.executable, '-W', 'error', '-c', PRELUDE + textwrap.dedent(program)],
        cwd=ROOT,
        env={**os.environ, 'PYTHONPATH': ROOT},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        said = b''
        if interrupt:
            said = process.stderr.readline()
            process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()  # one that hangs
    return out.split(), process.returncode, said + err


def test_a_program_that_ends_right_after_sending():
    assert run("""
        producer = new()
        for number in range(45):
            producer.send_messages('topic', b'%d' % number)
    """) == ([b'%d' % number for number in range(45)], 0, b'')


def test_several_producers_are_all_flushed():
    sent, code, err = run("""
        producers = [new() for _ in range(3)]
        for number, producer in enumerate(producers):
            producer.send_messages('topic', b'%d' % number)
    """)
    assert (sorted(sent), code, err) == ([b'0', b'1', b'2'], 0, b'')


def test_a_program_that_ends_by_sys_exit():
    assert run("""
        producer = new()
        producer.send_messages('topic', b'a')
        sys.exit(3)
    """) == ([b'a'], 3, b'')


def test_a_program_that_ends_by_an_error():
    sent, code, err = run("""
        producer = new()
        producer.send_messages('topic', b'a')
        raise ValueError('the end')
    """)
    assert (sent, code) == ([b'a'], 1)
    assert err.endswith(b'ValueError: the end\n')


def test_a_thread_that_ends_by_sys_exit_ends_nothing_else():
    assert run("""
        producer = new()
        def work():
            producer.send_messages('topic', b'a')
            sys.exit(5)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        producer.send_messages('topic', b'b')
    """) == ([b'a', b'b'], 0, b'')


def test_a_thread_that_goes_on_sending_when_the_main_one_is_over():
    """Python joins it before it runs what is to be done at exit."""
    assert run("""
        producer = new()
        main = threading.main_thread()
        def later():
            main.join()
            producer.send_messages('topic', b'a')
        threading.Thread(target=later).start()
    """) == ([b'a'], 0, b'')


def test_a_producer_made_by_a_thread_when_the_main_one_is_over():
    """From Python 3.12 on no thread can be started then: the program is told at once."""
    sent, code, err = run("""
        main = threading.main_thread()
        def later():
            main.join()
            try:
                producer = new()
            except RuntimeError as error:
                os.write(1, b'refused')
            else:
                producer.send_messages('topic', b'a')
                producer.stop()
        threading.Thread(target=later).start()
    """)
    assert sent in ([b'a'], [b'refused'])
    assert (code, err) == (0, b'')


def test_a_daemon_thread_that_sends_until_the_end_loses_nothing_it_was_not_told_of():
    sent, code, err = run("""
        producer = new()
        queued = [0]
        def send():
            try:
                while True:
                    producer.send_messages('topic', b'%d' % queued[0])
                    queued[0] += 1
            except Exception:
                os.write(2, b'%d' % queued[0])
        threading.Thread(target=send, daemon=True).start()
        while queued[0] < 10:
            pass
    """)
    assert code == 0
    # What comes when the last count is taken is told of by the log, and is the last there was.
    lost = sum(map(int, re.findall(rb'(\d+) messages came when the producer had stopped', err)))
    queued = re.search(rb'\d+$', err)
    count = int(queued.group()) - lost if queued else len(sent)
    assert sent[:count] == [b'%d' % n for n in range(count)]


def test_os_exit_ends_without_a_flush():
    """Nobody is asked: whoever calls it stops the producer first."""
    assert run("""
        producer = new(batch_send_every_t=60)
        producer.send_messages('topic', b'a')
        os._exit(0)
    """) == ([], 0, b'')


def test_a_producer_that_was_stopped_is_not_flushed_again():
    assert run("""
        producer = new()
        producer.send_messages('topic', b'a')
        producer.stop()
    """) == ([b'a'], 0, b'')


def test_ctrl_c_during_stop_is_raised_and_the_rest_is_sent_at_exit():
    sent, code, err = run(
        """
        client.down = True
        producer = new(async_log_messages_on_error=False)
        producer.send_messages('topic', b'a')
        try:
            producer.stop()  # its first retry writes a line
        except KeyboardInterrupt:
            client.down = False
        """,
        interrupt=True,
    )
    assert (sent, code) == ([b'a'], 0)
    assert b'lost' not in err


def test_ctrl_c_during_the_flush_at_exit_says_what_is_lost():
    sent, code, err = run(
        """
        client.down = True
        producer = new(batch_send_every_n=1)
        producer.send_messages('topic', b'a', b'b', b'c')
        """,
        interrupt=True,
    )
    assert sent == []
    assert b'messages are lost' in err
    assert b'KeyboardInterrupt' in err


def test_ctrl_c_during_the_flush_at_exit_is_the_end():
    # What the thread runs is of a module, as the real client is: it keeps nothing of the program
    # alive, so that the producer is collected when threads are not run any more.
    sent, code, err = run(
        """
        from test.fake_client import DownClient
        producer = SimpleProducer(DownClient(), async_send=True, batch_send_every_n=1)
        producer.send_messages('topic', b'a', b'b', b'c')
        """,
        interrupt=True,
    )
    assert sent == []
    assert b'messages are lost' in err
    assert err.count(b'KeyboardInterrupt') == 1


def test_the_handler_of_a_signal_that_comes_inside_a_call_may_stop_the_producer():
    assert run("""
        from collections import deque
        class Waiting(deque):
            def extend(self, items):
                super().extend(items)
                signal.raise_signal(signal.SIGTERM)
        producer = new()
        producer.queue.queue = Waiting()
        def stop(number, frame):
            producer.stop()
            sys.exit(3)
        signal.signal(signal.SIGTERM, stop)
        producer.send_messages('topic', b'a')
    """) == ([b'a'], 3, b'')


def test_a_producer_that_its_own_thread_collects_while_it_takes_messages():
    assert run("""
        import gc
        from collections import deque
        gc.disable()
        class Waiting(deque):
            def popleft(self):
                gc.collect()
                return super().popleft()
        producer = new()
        producer.itself = producer
        producer.queue.queue = Waiting()
        queue, thread = producer.queue, producer.thread
        del producer
        queue.put_all([(('topic', 0), b'a', None)])
        thread.join(5)
        sys.exit(thread.is_alive())
    """) == ([b'a'], 0, b'')


def test_a_producer_that_is_collected_while_its_thread_cannot_log():
    sent, code, err = run("""
        import logging
        logging.basicConfig(format='%(message)s')
        producer = new(async_stop_timeout=0)
        client.down = True
        with logging.root.handlers[0].lock:
            producer.send_messages('topic', b'a')
            del producer
    """)
    assert (sent, code) == ([], 0)
    assert b'collected, but not stopped yet' in err
    assert b'1 messages in all' in err


def test_brokers_that_stay_away_hold_a_program_for_the_stop_timeout_and_no_longer():
    sent, code, err = run("""
        client.down = True
        producer = new(async_stop_timeout=0.2, async_log_messages_on_error=False)
        producer.send_messages('topic', b'a', b'b')
    """)
    assert (sent, code) == ([], 0)
    assert b'2 messages in all' in err


# ---------------------------------------------------------------- more than one process

needs_fork = pytest.mark.skipif(not hasattr(os, 'fork'), reason='this system has no fork')


@needs_fork
@pytest.mark.filterwarnings('default')
@pytest.mark.parametrize('leave', ['sys.exit()', 'os._exit(0)'])
def test_a_fork_sends_what_the_parent_queued_once(leave):
    sent, code, err = run(
        """
        import warnings
        warnings.simplefilter('ignore', DeprecationWarning)  # 3.12 on: threads and fork
        producer = new(batch_send_every_t=60)
        producer.send_messages('topic', b'parent')
        child = os.fork()
        if not child:
            %s
        os.waitpid(child, 0)
    """
        % leave
    )
    assert (sent, code, err) == ([b'parent'], 0, b'')


@needs_fork
def test_a_fork_sends_its_own_messages_too():
    sent, code, err = run("""
        import warnings
        warnings.simplefilter('ignore', DeprecationWarning)
        producer = new(batch_send_every_t=60)
        producer.send_messages('topic', b'parent')
        child = os.fork()
        if not child:
            producer.send_messages('topic', b'child')
            sys.exit()
        os.waitpid(child, 0)
    """)
    assert (sent, code, err) == ([b'child', b'parent'], 0, b'')


@needs_fork
@pytest.mark.parametrize('made', ['before', 'within'])
def test_a_child_of_multiprocessing_that_ends_right_after_sending(made):
    sent, code, err = run(
        """
        import warnings
        warnings.simplefilter('ignore', DeprecationWarning)
        producer = new() if %r == 'before' else None
        def work():
            global producer
            producer = producer or new()
            producer.send_messages('topic', b'child')
        process = multiprocessing.get_context('fork').Process(target=work)
        process.start()
        process.join()
    """
        % made
    )
    assert (sent, code, err) == ([b'child'], 0, b'')
