"""Writing exactly once, without Spark: tasks and drivers that end anywhere, and the next run."""

from __future__ import annotations

import itertools
import random

import pytest

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import (
    IllegalStateError,
    KafkaConfigurationError,
    KafkaError,
    ProducerFencedError,
)
from kafka.producer import KafkaProducer
from kafka.producer.two_phase_commit import PreparedTransactions
from kafka.spark import clients, exactly_once
from kafka.spark.decisions import UndecidableError
from kafka.spark.exactly_once import Place, TransactionOutlet
from kafka.spark.writing import RowLayout, UnwritableRowError, write_rows
from kafka.testing import Cluster

BASE = 'p-q'
TASKS = 3
ROWS = RowLayout(value=0, given_topic='t')


class Killed(Exception):
    """Stands for kill -9: nothing is done after it."""


@pytest.fixture(params=['2.8', '4.4'])  # transactions of version 1, and of version 2
def cluster(request):
    with Cluster(version=request.param, topics={'t': 2}) as cluster:
        yield cluster
        clients.close_all()


@pytest.fixture
def config(cluster):
    return {
        'bootstrap_servers': cluster.bootstrap,
        'max_block_ms': 5000,
        'transaction_timeout_ms': 60000,
    }


@pytest.fixture
def client(config):
    exactly_once._swept.clear()  # this process is a new one
    with PreparedTransactions(**config) as client:
        yield client


def stored(config):
    """Return what readers of committed records see, up to the first open transaction."""
    found = []
    with KafkaConsumer(
        bootstrap_servers=config['bootstrap_servers'], isolation_level='read_committed'
    ) as consumer:
        places = [TopicPartition('t', number) for number in range(2)]
        consumer.assign(places)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(places)
        while any(consumer.position(each) < ends[each] for each in places):
            for records in consumer.poll(1000).values():
                found += [int(each.value) for each in records]
    return sorted(found)


def is_nothing_open(config, client):
    """Tell whether no transaction keeps readers waiting."""
    client.fence(client.open_ids('\0') or ())  # what ends is written by then
    ends = []
    for level in ('read_committed', 'read_uncommitted'):
        with KafkaConsumer(
            bootstrap_servers=config['bootstrap_servers'], isolation_level=level
        ) as consumer:
            ends.append(consumer.end_offsets([TopicPartition('t', each) for each in range(2)]))
    return ends[0] == ends[1]


def task(config, batch, number, rows, attempt=0, base=BASE):
    """Do what a task does; return what the driver is told."""
    outlet = begun(config, batch, number, attempt, base)
    if outlet._settled.is_wanted:
        write_rows([(str(row),) for row in rows], ROWS, outlet, number)
    return outlet.told()


def begun(config, batch, number, attempt=0, base=BASE):
    """Begin a task: it knows what is decided, and has no producer yet."""
    place = Place(base, batch, number, attempt)
    return TransactionOutlet(place, exactly_once.settle(place, config), config)


def dealt(batch, seed):
    """Return the rows of a batch by task: which task has which is another thing in each run."""
    rows = list(range(batch * 10, batch * 10 + 10))
    random.Random(seed).shuffle(rows)
    return [rows[number::TASKS] for number in range(TASKS)]


def run(config, batch, seed, attempts=(0, 0, 0), tasks=TASKS):
    """Run a batch: its tasks, of which the last may not come, and the driver."""
    told = [
        task(config, batch, number, rows, attempts[number])
        for number, rows in list(enumerate(dealt(batch, seed)))[:tasks]
    ]
    if tasks == TASKS:
        exactly_once.commit(told, batch, config)
    return told


# ------------------------------------------------------------ where a run can end


class Kill:
    """Lets the driver die in front of, or behind, one of its steps."""

    def __init__(self, monkeypatch):
        self._patch = monkeypatch

    def before_the_decision(self):
        def write(*_):
            raise Killed

        self._patch.setattr(exactly_once, 'write_mark', write)

    def behind_the_decision(self):
        write = exactly_once.write_mark

        def write_and_die(*arguments):
            write(*arguments)
            raise Killed

        self._patch.setattr(exactly_once, 'write_mark', write_and_die)

    def behind_ends(self, count):
        commit = PreparedTransactions.commit

        def commit_some(self, transactions):
            commit(self, dict(itertools.islice(transactions.items(), count)))
            raise Killed

        self._patch.setattr(PreparedTransactions, 'commit', commit_some)

    def before_the_sweep(self):
        def sweep(*_):
            raise Killed

        self._patch.setattr(exactly_once, '_sweep', sweep)


POINTS = {
    'before the decision': Kill.before_the_decision,
    'behind the decision': Kill.behind_the_decision,
    'behind one end': lambda kill: kill.behind_ends(1),
    'behind two ends': lambda kill: kill.behind_ends(2),
    'behind all ends': lambda kill: kill.behind_ends(3),
    'before the sweep': Kill.before_the_sweep,
}
EVERYTHING = list(range(10, 30))


def test_batches_one_after_the_other(config, client):
    for batch in (1, 2):
        run(config, batch, batch)
    assert stored(config) == EVERYTHING
    assert is_nothing_open(config, client)


@pytest.mark.parametrize('attempts', [(0, 0, 0), (2, 0, 1)])
@pytest.mark.parametrize('point', sorted(POINTS))
def test_a_driver_that_dies_anywhere_and_the_next_run(config, client, point, attempts):
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        POINTS[point](Kill(patch))
        run(config, 1, 'first', attempts)
    exactly_once._swept.clear()
    run(config, 1, 'second')
    run(config, 2, 'third')
    assert stored(config) == EVERYTHING
    assert is_nothing_open(config, client)


@pytest.mark.parametrize('tasks', range(TASKS))
def test_tasks_that_never_came_to_the_driver(config, client, tasks):
    run(config, 1, 'first', tasks=tasks)
    run(config, 1, 'second')
    run(config, 2, 'third')
    assert stored(config) == EVERYTHING
    assert is_nothing_open(config, client)


@pytest.mark.parametrize('point', ['behind the decision', 'behind one end', 'behind two ends'])
@pytest.mark.parametrize('dies_again', [False, True])
def test_transactions_that_timed_out_behind_the_decision_are_written_again(
    config, client, point, dies_again
):
    """The same rows in the same tasks, as this needs it; the driver was away for too long."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        POINTS[point](Kill(patch))
        run(config, 1, 'same')
    client.fence(['%s-%d-0' % (BASE, each) for each in range(TASKS)])  # as the time-out does
    if dies_again:
        with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
            POINTS[point](Kill(patch))
            run(config, 1, 'same', (1, 1, 1))
    run(config, 1, 'same')
    run(config, 2, 'next')
    assert stored(config) == EVERYTHING


def test_what_was_lost_is_not_written_by_other_tasks_than_before(config, client):
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        Kill(patch).behind_ends(1)
        run(config, 1, 'same')
    client.fence(['%s-%d-0' % (BASE, each) for each in range(TASKS)])
    rows = [*dealt(1, 'same'), []]
    told = [task(config, 1, number, some) for number, some in enumerate(rows)]
    with pytest.raises(UndecidableError, match='4 partitions now, not 3'):
        exactly_once.commit(told, 1, config)


def test_a_time_out_before_the_decision_fails_the_batch_and_nothing_is_committed(config, client):
    told = [task(config, 1, number, rows) for number, rows in enumerate(dealt(1, 'first'))]
    client.fence(['%s-1-0' % BASE])
    with pytest.raises(ProducerFencedError, match=r'p-q-1-0.*kafka\.transaction\.timeout\.ms'):
        exactly_once.commit(told, 1, config)
    exactly_once.abort(told, 1, None, config)
    assert stored(config) == [] and is_nothing_open(config, client)
    run(config, 1, 'second')
    run(config, 2, 'third')
    assert stored(config) == EVERYTHING


# ------------------------------------------------------------ attempts, and other runs


def test_the_attempt_that_was_accepted_is_not_fenced_by_another(config, client):
    """Speculation: both attempts of task 0 are done; Spark has taken the first, or the second."""
    rows = dealt(1, 'same')
    first, second = [task(config, 1, 0, rows[0], attempt) for attempt in (0, 1)]
    rest = [task(config, 1, number, rows[number]) for number in (1, 2)]
    exactly_once.commit([first, *rest], 1, config)
    assert second.entry is not None
    rows = dealt(2, 'same')
    first, second = [task(config, 2, 0, rows[0], attempt) for attempt in (0, 1)]
    rest = [task(config, 2, number, rows[number]) for number in (1, 2)]
    exactly_once.commit([second, *rest], 2, config)
    assert stored(config) == EVERYTHING
    assert is_nothing_open(config, client)


def test_an_attempt_that_was_killed_keeps_no_reader_waiting(config, client):
    killed = begun(config, 1, 0)
    killed.producer('t').send('t', b'99').get(10)
    run(config, 1, 'first', (1, 0, 0))
    assert stored(config) == list(range(10, 20)) and is_nothing_open(config, client)
    killed.give_up()


def test_an_older_checkpoint_is_refused(config):
    run(config, 2, 'first')
    with pytest.raises(IllegalStateError, match='batch 1 is about to be written, but batch 2'):
        run(config, 1, 'second')


def test_another_driver_over_the_same_checkpoint_is_refused(config):
    first = [task(config, 1, number, rows) for number, rows in enumerate(dealt(1, 'first'))]
    second = [task(config, 1, number, rows) for number, rows in enumerate(dealt(1, 'second'))]
    with pytest.raises(ProducerFencedError):
        exactly_once.commit(first, 1, config)
    exactly_once.commit(second, 1, config)
    assert stored(config) == list(range(10, 20))


def test_a_driver_that_began_before_the_other_decided_is_refused(config, monkeypatch):
    """Its attempts have other numbers, and brokers before 3.0 do not tell the first one of them."""
    monkeypatch.setattr(PreparedTransactions, 'held_ids', lambda client, prefix: None)
    second = [task(config, 1, number, [number], 7) for number in range(TASKS)]
    run(config, 1, 'first')
    with pytest.raises(IllegalStateError, match='another driver'):
        exactly_once.commit(second, 1, config)
    exactly_once.abort(second, 1, None, config)
    assert stored(config) == list(range(10, 20))


# ------------------------------------------------------------ tasks that nobody waits for any more


#: Where such a task can be when the driver is done: (whose step, which one, whether behind it).
STEPS = {
    'it has no producer id': (TransactionOutlet, '_initialise', False),
    'it has a producer id': (TransactionOutlet, '_initialise', True),
    'it has looked': (TransactionOutlet, '_check_unchanged', True),
    'it has begun': (KafkaProducer, 'begin_transaction', True),
    'it has sent': (TransactionOutlet, 'finish', False),
    'it has prepared': (TransactionOutlet, 'finish', True),
}


def late(config, step, drive, *arguments):
    """Run a task, and what the driver does at a step of it; return what the task fails with."""
    owner, name, is_behind = STEPS[step]
    original = getattr(owner, name)

    def held(self, *more):
        done = original(self, *more) if is_behind else None
        patch.setattr(owner, name, original)  # the driver's own tasks are not held
        drive()
        return done if is_behind else original(self, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, held)
        try:
            task(config, *arguments)
        except KafkaError as error:
            return str(error)
    return ''


def check_late(config, client, step, error, rows):
    assert ('is over' in error) == (step in ('it has no producer id', 'it has a producer id'))
    assert stored(config) == rows
    assert is_nothing_open(config, client)


@pytest.mark.parametrize('has_others', [False, True])
@pytest.mark.parametrize('step', STEPS)
def test_a_task_that_runs_on_when_a_data_frame_was_aborted(config, client, step, has_others):
    base = exactly_once.write_base('p')
    others = [task(config, None, 1, [1], base=base)] if has_others else []

    def drive():
        exactly_once.abort([None, *others], None, base, config, 't')

    check_late(config, client, step, late(config, step, drive, None, 0, [0], 0, base), [])


@pytest.mark.parametrize('step', STEPS)
def test_another_attempt_runs_on_when_a_data_frame_was_committed(config, client, step):
    base = exactly_once.write_base('p')

    def drive():
        told = [task(config, None, number, [number], base=base) for number in range(TASKS)]
        exactly_once.commit(told, None, config)

    error = late(config, step, drive, None, 0, [0], 1, base)
    check_late(config, client, step, error, [0, 1, 2])


@pytest.mark.parametrize('step', STEPS)
def test_another_attempt_runs_on_when_a_batch_was_committed(config, client, step):
    """Of this run, or of one before it that failed."""

    def drive():
        run(config, 1, 'first')

    check_late(config, client, step, late(config, step, drive, 1, 0, [0], 1), EVERYTHING[:10])


@pytest.mark.parametrize('step', ['it has a producer id', 'it has begun', 'it has prepared'])
def test_a_task_that_runs_on_when_a_batch_was_aborted(config, client, step):
    """Another one had ended, so that the driver knows which query it is."""
    others = [task(config, 1, 1, [1])]
    error = late(
        config,
        step,
        lambda: exactly_once.abort([None, *others], 1, None, config),
        *(1, 0, [0]),
    )
    assert is_nothing_open(config, client), error


def test_a_write_of_which_no_topic_is_known_is_fenced_all_the_same(config, client):
    base = exactly_once.write_base('p')

    def drive():
        exactly_once.abort([None], None, base, config)

    late(config, 'it has looked', drive, None, 0, [0], 0, base)
    assert is_nothing_open(config, client) and stored(config) == []


# ------------------------------------------------------------ without rows, with bad ones


def test_tasks_without_rows_ask_for_no_transaction(config, cluster):
    told = [task(config, 1, number, []) for number in range(TASKS)]
    assert [each.entry for each in told] == [None] * TASKS
    exactly_once.commit(told, 1, config)
    exactly_once.commit([], 1, config)
    names = {type(each.request).__name__ for each in cluster.requests}
    assert not names & {'InitProducerIdRequest', 'OffsetCommitRequest'}
    assert 'OffsetFetchRequest' in names


def test_a_row_that_is_refused_leaves_nothing_open(config, client):
    with pytest.raises(UnwritableRowError, match='row 1'):
        task(config, 1, 0, [1, '2' * 2000000])
    assert stored(config) == [] and is_nothing_open(config, client)


def test_a_time_out_that_brokers_do_not_allow_is_told_by_its_option(config):
    with pytest.raises(KafkaConfigurationError, match=r'kafka\.transaction\.timeout\.ms'):
        task({**config, 'transaction_timeout_ms': 10**8}, 1, 0, [1])


# ------------------------------------------------------------ DataFrames


def test_a_data_frame_is_there_when_it_is_committed(config, client):
    base = exactly_once.write_base('p')
    told = [task(config, None, number, [number], base=base) for number in range(TASKS)]
    assert stored(config) == []
    exactly_once.commit(told, None, config)
    assert stored(config) == [0, 1, 2] and is_nothing_open(config, client)


def test_nothing_is_left_of_a_data_frame_that_failed(config, client):
    base = exactly_once.write_base('p')
    told = [task(config, None, number, [number], base=base) for number in range(TASKS)]
    exactly_once.abort([*told[:2], None], None, base, config)
    assert stored(config) == []
    exactly_once.abort(told, None, base, config)
    assert is_nothing_open(config, client)


def test_each_write_has_ids_of_its_own():
    assert exactly_once.write_base('p') != exactly_once.write_base('p')


# ------------------------------------------------------------ decisions


def test_what_is_decided_is_not_aborted(config, client):
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        Kill(patch).behind_ends(1)
        told = []
        for number, rows in enumerate(dealt(1, 'first')):
            told.append(task(config, 1, number, rows))
        exactly_once.commit(told, 1, config)
    exactly_once.abort(told, 1, None, config)
    run(config, 1, 'second')
    run(config, 2, 'third')
    assert stored(config) == EVERYTHING


def test_a_decision_of_many_tasks_stands_in_several_groups(config, client, monkeypatch):
    monkeypatch.setattr('kafka.spark.decisions.MOST_TEXT', 8)
    for batch in (1, 2):
        run(config, batch, batch)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        Kill(patch).behind_ends(1)
        run(config, 3, 'first')
    run(config, 3, 'second')
    assert stored(config) == list(range(10, 40))


def test_a_decision_of_which_a_part_is_missing_is_told(config, client, monkeypatch):
    monkeypatch.setattr('kafka.spark.decisions.MOST_TEXT', 8)
    run(config, 1, 'first')
    mark = exactly_once.read_mark(client, BASE)
    exactly_once.write_mark(client, BASE, 't', mark._replace(text=mark.text.replace(' ', ' 9', 1)))
    with pytest.raises(UndecidableError, match='batch 1 is incomplete'):
        run(config, 1, 'second')
    exactly_once.write_mark(client, BASE, 't', mark._replace(text='of somebody else'))
    with pytest.raises(UndecidableError, match='batch 1 cannot be read'):
        run(config, 1, 'second')


def test_outlets_show_ids_and_no_secrets():
    settled = exactly_once.Settled(False, True, None)
    outlet = TransactionOutlet(Place(BASE, 1, 2, 3), settled, {'sasl_plain_password': 'geheim'})
    assert repr(outlet) == '<TransactionOutlet p-q-2-3>'
