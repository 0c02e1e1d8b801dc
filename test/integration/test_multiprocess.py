"""MultiProcessConsumer of 0.9.5 on real brokers: reading, commits, deaths, and whole programs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kafka import MultiProcessConsumer, SimpleClient, SimpleConsumer
from kafka.common import OffsetFetchRequest
from kafka.consumer import multiprocess
from test.integration.fixtures import produce, retry, values

pytestmark = [
    pytest.mark.integration,
    # What differs between releases is the clients' business: two will do unless asked by name.
    pytest.mark.releases(some=('0.8.2.2', '4.4.0')),
]

ROOT = Path(__file__).resolve().parents[2]
STORES_OFFSETS = pytest.mark.releases(since='0.8.1')
EVERYTHING = [b'%d' % i for i in range(200)]


@pytest.fixture
def consume(client, filled):
    """Return a maker of consumers without a group (0.8.0 stores no offsets); each is stopped."""
    made = []

    def make(**options):
        options.setdefault('group', None)
        options.setdefault('auto_commit', False)
        options.setdefault('num_procs', 2)
        made.append(MultiProcessConsumer(client, topic=filled, **options))
        return made[-1]

    yield make
    for consumer in made:
        consumer.stop()


@pytest.fixture
def filled(client, topic):
    """The topic with 0 to 99 in partition 0 and 100 to 199 in partition 1."""
    produce(client, topic, 0, EVERYTHING[:100])
    produce(client, topic, 1, EVERYTHING[100:])
    return topic


def stored(client, topic, group):
    """Return the sum of the group's offsets of partitions 0 and 1."""
    answers = client.send_offset_fetch_request(
        group.encode(),
        [OffsetFetchRequest(topic.encode(), partition) for partition in (0, 1)],
        fail_on_error=False,
    )
    return sum(max(0, answer.offset) for answer in answers)


# --- reading ------------------------------------------------------------------------------------


@pytest.mark.parametrize('method', ['fork', 'spawn'])
def test_processes_read_every_message_once_and_each_partition_in_order(
    consume, monkeypatch, method
):
    monkeypatch.setattr(multiprocess, 'start_method', lambda: method)
    consumer = consume()
    consumer.provide_partition_info()
    found = consumer.get_messages(count=200, timeout=30)
    for partition, expected in ((0, EVERYTHING[:100]), (1, EVERYTHING[100:])):
        assert [m.message.value for p, m in found if p == partition] == expected
    assert consumer.offsets == {0: 100, 1: 100}
    assert consumer.pending() == 0


@pytest.mark.parametrize('method', ['fork', 'spawn'])
def test_a_client_of_1_x_will_do(cluster, filled, monkeypatch, method):
    monkeypatch.setattr(multiprocess, 'start_method', lambda: method)
    client = SimpleClient(cluster.bootstrap)
    consumer = MultiProcessConsumer(client, None, filled, auto_commit=False, num_procs=2)
    assert consumer.topic == filled
    consumer.provide_partition_info()
    found = consumer.get_messages(count=200, timeout=30)
    for partition, expected in ((0, EVERYTHING[:100]), (1, EVERYTHING[100:])):
        assert [m.message.value for p, m in found if p == partition] == expected
    consumer.stop()
    client.close()


def test_iteration_ends_when_a_second_brings_nothing_and_can_begin_anew(client, filled, consume):
    consumer = consume(partitions_per_proc=1)
    assert sorted(values(consumer), key=int) == EVERYTHING
    produce(client, filled, 1, [b'late'])
    started = time.monotonic()
    assert values(consumer) == [b'late']
    assert 0.9 < time.monotonic() - started < 10


def test_one_process_reads_all_partitions_and_several_may_have_none(consume):
    for processes in (1, 4):
        consumer = consume(num_procs=processes)
        assert len(consumer.procs) == processes
        assert sorted(values(consumer.get_messages(200, timeout=30)), key=int) == EVERYTHING


def test_only_the_given_partitions_are_read(consume):
    assert values(consume(partitions=[1])) == EVERYTHING[100:]


def test_messages_in_excess_stay_for_the_next_call(consume):
    consumer = consume()
    found = []
    for count in (1, 50, 149):
        found += consumer.get_messages(count, timeout=30)
    assert sorted(values(found), key=int) == EVERYTHING
    assert consumer.get_messages(1, block=False) == []


def test_options_go_to_the_consumers_in_the_processes(client, filled, consume):
    produce(client, filled, 0, [b'x' * 50000])
    consumer = consume(partitions=[0], max_buffer_size=None)
    assert values(consumer.get_messages(101, timeout=30)) == [*EVERYTHING[:100], b'x' * 50000]


def test_messages_written_while_the_consumer_waits_arrive(client, filled, consume):
    consumer = consume()
    assert len(consumer.get_messages(200, timeout=30)) == 200
    produce(client, filled, 1, [b'late'])
    assert values(consumer.get_messages(1, timeout=None)) == [b'late']


def test_offsets_written_before_the_start_and_later_are_gone_to(consume):
    consumer = consume()
    consumer.offsets.update({0: 90, 1: 95})
    assert len(consumer.get_messages(15, timeout=30)) == 15
    assert consumer.get_messages(200, timeout=1) == []
    consumer.offsets[1] = 98
    assert values(consumer.get_messages(2, timeout=30)) == EVERYTHING[198:]


# --- commits ------------------------------------------------------------------------------------


@STORES_OFFSETS
def test_auto_commit_by_count_keeps_pace(client, filled, consume, new_name):
    group = new_name()
    consumer = consume(
        group=group, auto_commit=True, auto_commit_every_n=20, auto_commit_every_t=None
    )
    for handed_out, _ in enumerate(consumer, 1):
        if handed_out == 195:
            break
    assert stored(client, filled, group) == 180
    again = consume(group=group)
    assert len(list(again)) == 20


@STORES_OFFSETS
def test_auto_commit_by_time_and_at_the_end_by_stop(client, filled, consume, new_name):
    group = new_name()
    consumer = consume(
        group=group, auto_commit=True, auto_commit_every_n=None, auto_commit_every_t=100
    )
    assert len(consumer.get_messages(50, timeout=30)) == 50

    def committed():
        assert stored(client, filled, group) == 50

    retry(committed, AssertionError, seconds=10)
    consumer.get_messages(7, timeout=30)
    consumer.stop()
    assert stored(client, filled, group) == 57


@STORES_OFFSETS
def test_a_group_goes_on_where_another_consumer_sought_and_committed(
    client, filled, consume, new_name
):
    group = new_name()
    seeker = SimpleConsumer(client, group, filled, auto_commit=False)
    seeker.seek(-13, 2)
    assert seeker.commit() is True
    seeker.stop()
    assert len(list(consume(group=group))) == 13


# --- deaths -------------------------------------------------------------------------------------


def test_a_process_killed_in_the_middle_is_replaced_and_nothing_is_lost_or_doubled(
    client, filled, consume
):
    more = [b'%d' % i for i in range(200, 3000)]
    produce(client, filled, 0, more)
    consumer = consume()
    found = consumer.get_messages(100, timeout=30)
    victim = consumer.procs[0]
    victim.kill()
    found += consumer.get_messages(2900, timeout=30)
    assert sorted(values(found), key=int) == EVERYTHING + more
    assert consumer.procs[0].pid != victim.pid


def test_stop_is_quick_and_leaves_nothing(consume):
    consumer = consume()
    consumer.get_messages(10, timeout=30)
    started = time.monotonic()
    consumer.stop()
    consumer.stop()
    assert time.monotonic() - started < 3
    assert not any(process.is_alive() for process in consumer.procs)


@pytest.mark.releases(since='4.4.0')
def test_without_a_broker_calls_end_in_time_and_so_does_stop(cluster, consume):
    consumer = consume()
    assert len(consumer.get_messages(200, timeout=30)) == 200
    cluster.kill(0)
    started = time.monotonic()
    assert consumer.get_messages(1, timeout=0.5) == []
    assert consumer.get_messages(1, block=False) == []
    consumer.stop()
    assert time.monotonic() - started < 5


# --- whole programs, which have no main guard -----------------------------------------------------

PROGRAM = """
import os, sys, time
print('begins'); sys.stdout.flush()
method, then, hosts, topic, *group = sys.argv[1:]
if method != 'default':
    import multiprocessing
    multiprocessing.set_start_method(method)
from kafka import KafkaClient, MultiProcessConsumer
client = KafkaClient(hosts)
consumer = MultiProcessConsumer(client, group[0] if group else None, topic, num_procs=2)
for message in consumer.get_messages(200) if then == 'wait' else consumer:
    print(message.message.value.decode())
print('pids', *[process.pid for process in consumer.procs]); sys.stdout.flush()
if then == 'stop':
    consumer.stop()
if then == 'wait':
    consumer.get_messages(count=1, timeout=None)
"""


@pytest.fixture
def start(tmp_path, cluster, filled):
    """Return a function that starts the program; it is killed in the end."""
    path = tmp_path / 'program.py'
    path.write_text(PROGRAM)
    started = []

    def run(method, then, *group):
        started.append(
            subprocess.Popen(
                [
                    *(sys.executable, '-W', 'error'),
                    *('-W', 'ignore::ResourceWarning'),  # such programs close no client
                    *(str(path), method, then, cluster.bootstrap, filled, *group),
                ],
                cwd=str(tmp_path),
                env={'PYTHONPATH': str(ROOT)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        )
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()


def read(lines):
    """Check what the program says, as far as it is the same each time; return its children."""
    assert lines[0] == 'begins'
    assert sorted(lines[1:201], key=int) == [value.decode() for value in EVERYTHING]
    word, *pids = lines[201].split()
    assert (word, len(pids)) == ('pids', 2)
    return list(map(int, pids))


def wait_for_the_end_of(pids):
    deadline = time.monotonic() + 10
    while any(os.path.exists('/proc/%d' % pid) for pid in pids):
        assert time.monotonic() < deadline, 'children live on'
        time.sleep(0.02)


@pytest.mark.parametrize(
    'method, then',
    [('default', 'stop'), ('default', 'end'), ('spawn', 'end'), ('forkserver', 'end')],
)
def test_a_program_without_a_main_guard_runs_once(start, method, then):
    output, errors = start(method, then).communicate(timeout=60)
    lines = output.splitlines()
    assert len(lines) == 202
    wait_for_the_end_of(read(lines))
    assert errors == ''


@STORES_OFFSETS
def test_the_end_of_a_program_commits_what_it_took(client, filled, start, new_name):
    group = new_name()
    output, errors = start('default', 'end', group).communicate(timeout=60)
    assert len(output.splitlines()) == 202
    assert errors == ''
    assert stored(client, filled, group) == 200


@pytest.mark.parametrize(
    'method, number',
    [
        ('default', signal.SIGKILL),
        ('spawn', signal.SIGKILL),
        ('forkserver', signal.SIGKILL),
        ('default', signal.SIGTERM),
        ('default', signal.SIGINT),
        ('spawn', signal.SIGINT),
    ],
)
def test_no_process_outlives_a_program_that_is_killed(start, method, number):
    program = start(method, 'wait')
    pids = read([program.stdout.readline().strip() for _ in range(202)])
    assert all(os.path.exists('/proc/%d' % pid) for pid in pids)
    if number == signal.SIGINT:
        os.killpg(program.pid, number)  # as Ctrl-C does
    else:
        program.send_signal(number)
    _, errors = program.communicate(timeout=20)
    wait_for_the_end_of(pids)
    assert errors.count('Traceback') == (number == signal.SIGINT)
