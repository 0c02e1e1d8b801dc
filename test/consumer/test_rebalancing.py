"""What the thread that polls does for a rebalance, by both protocols.

Brokers, network and clock are in memory, but for two tests: one needs the thread in the background,
one figures of time.
"""

from __future__ import annotations

import asyncio
import time

import pytest

from kafka import AsyncConsumerRebalanceListener, ConsumerRebalanceListener
from kafka.consumer.rebalancing import ListenerError
from kafka.coordinator.member import RebalanceStep, StepKind
from kafka.errors import CommitFailedError, IllegalStateError, KafkaError
from kafka.testing import Cluster, MemoryCluster
from kafka.testing.faults import Delay, Error
from test.consumer import written_logs
from test.consumer.modern import SECONDS, consumer_of, poll_until, poll_while
from test.simulation.reader import SimConsumer

pytestmark = pytest.mark.once

HEARTBEAT = 60  # ms
COORDINATOR_NOT_AVAILABLE, TOPIC_AUTHORIZATION_FAILED = 15, 29


@pytest.fixture(params=['classic', 'consumer'])
def protocol(request):
    return request.param


#: Members are notified of a rebalance by their heartbeats. Since 4.3 a coordinator waits for a
#: second between two assignments.
BROKERS = {
    'version': '4.2',
    'topics': {'t': 4},
    'group_consumer_heartbeat_interval_ms': HEARTBEAT,
}


class Brokers(MemoryCluster):
    """Attributes: loops: of all consumers, which go on while one of them is waited for."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.loops = []

    def now(self):
        return self.timers.clock.monotonic()


@pytest.fixture
def cluster():
    with Brokers(**BROKERS) as made:
        yield made


def write(cluster, count, partition=0, start=0):
    """Store values b'0', b'1' ... in a partition."""
    log = cluster.state.topics['t'].partitions[partition].log
    written_logs.write(log, *[b'%d' % number for number in range(start, start + count)])


def rest(consumer, seconds):
    """Do nothing for a while; the thread in the background would go on."""
    consumer._engine.wait(lambda: False, seconds)


class Noting(ConsumerRebalanceListener):
    def __init__(self):
        self.seen = []

    def on_partitions_revoked(self, revoked):
        self.seen.append(('revoked', set(revoked)))

    def on_partitions_assigned(self, assigned):
        self.seen.append(('assigned', set(assigned)))


class Losing(Noting):
    def on_partitions_lost(self, lost):
        self.seen.append(('lost', set(lost)))


def member(cluster, protocol, listener=None, **options):
    options = {'heartbeat_interval_ms': HEARTBEAT, **options}
    made = consumer(cluster, group_id='g', group_protocol=protocol, **options)
    made.subscribe(['t'], listener=listener)
    return made


def consumer(cluster, **options):
    """Return a consumer that begins with the first record."""
    if not isinstance(cluster, Brokers):
        return consumer_of(cluster, **options)
    return SimConsumer.of(cluster, cluster.loops, auto_offset_reset='earliest', **options)


def share(*consumers):
    """Poll until each consumer has as many partitions as the others."""
    for _ in range(int(SECONDS / 0.02)):
        if {len(each.assignment()) for each in consumers} == {4 // len(consumers)}:
            break
        for each in consumers:
            each.poll(timeout_ms=20)
    else:
        raise AssertionError([each.assignment() for each in consumers])
    owned = [partition for each in consumers for partition in each.assignment()]
    assert len(owned) == len(set(owned)) == 4


def test_two_members_share_and_one_takes_over(cluster, protocol):
    share_and_take_over(cluster, protocol)


def test_they_share_where_the_coordinator_waits_between_assignments(protocol):
    with Brokers(**{**BROKERS, 'version': '4.4'}) as made:
        share_and_take_over(made, protocol)


def share_and_take_over(cluster, protocol):
    with member(cluster, protocol) as first:
        share(first)
        with member(cluster, protocol) as second:
            share(first, second)
        share(first)


def test_a_listener_is_told_in_the_thread_that_polls_and_may_use_the_consumer(cluster, protocol):
    write(cluster, 5)

    class Using(Noting):
        def on_partitions_assigned(self, assigned):
            super().on_partitions_assigned(assigned)
            for partition in assigned:
                positions[partition] = made.position(partition)
                made.seek(partition, 3) if partition.partition == 0 else None

    positions, listener = {}, Using()
    with member(cluster, protocol, listener) as made:
        (*_, last) = poll_until(made, 2)
        assert last.offset == 4
        assert set(positions.values()) == {0}
    assert [what for what, partitions in listener.seen if partitions] == ['assigned']


def test_what_goes_is_told_before_what_comes(cluster, protocol):
    listener = Noting()
    with member(cluster, protocol, listener) as first:
        share(first)
        with member(cluster, protocol) as second:
            share(first, second)
    told = [(what, len(partitions)) for what, partitions in listener.seen if partitions]
    if protocol == 'classic':
        assert told == [('assigned', 4), ('revoked', 4), ('assigned', 2)]
    else:
        assert told == [('assigned', 4), ('revoked', 2)]


def test_a_listener_is_told_once_however_slow_the_loop_is(protocol):
    class Slow(Noting):
        def on_partitions_assigned(self, assigned):
            super().on_partitions_assigned(assigned)
            if assigned:  # the turn that takes note of it comes late, as on a busy machine
                made._engine.loop.call_threadsafe(time.sleep, 0.3)

    listener = Slow()
    with Cluster(**BROKERS) as cluster, member(cluster, protocol, listener) as made:
        share(made)
        made.poll(timeout_ms=500)
        assert [what for what, partitions in listener.seen if partitions] == ['assigned']


def test_a_listener_may_poll(cluster, protocol):
    class Polling(Noting):
        def on_partitions_assigned(self, assigned):
            super().on_partitions_assigned(assigned)
            made.poll(timeout_ms=100)

    listener = Polling()
    with member(cluster, protocol, listener) as made:
        share(made)
        assert [what for what, partitions in listener.seen if partitions] == ['assigned']


def test_a_listener_that_is_told_of_the_end_may_call_close(cluster, protocol):
    class Closing(Losing):
        def on_partitions_revoked(self, revoked):
            super().on_partitions_revoked(revoked)
            if revoked:
                made.close()

    listener = Closing()
    with member(cluster, protocol, listener) as made:
        share(made)
    assert [what for what, partitions in listener.seen if partitions] == ['assigned', 'revoked']
    with pytest.raises(IllegalStateError):
        made.poll()


def poll_until_asked(cluster, first, second):
    """Poll until one is asked to give partitions up."""
    deadline, member = cluster.now() + SECONDS, first._engine.member
    while not (member.step and member.step.kind is StepKind.REVOKE and member.step.is_begun):
        assert cluster.now() < deadline
        assert not first.poll(timeout_ms=20) and not second.poll(timeout_ms=20)


def write_each(cluster, count, start=0):
    for partition in range(4):
        write(cluster, count, start=start, partition=partition)


def test_a_commit_that_takes_long_holds_up_no_poll(cluster, protocol):
    """Partitions go when it is over; meanwhile those that stay are read."""
    write_each(cluster, 10)
    with member(cluster, protocol, auto_commit_interval_ms=60_000) as first:
        assert len(poll_until(first, 40)) == 40
        with cluster.faults.add(Error(COORDINATOR_NOT_AVAILABLE), 'OffsetCommit', times=None):
            with member(cluster, protocol) as second:
                poll_until_asked(cluster, first, second)
                longest, read = 0.0, []
                write_each(cluster, 1, start=10)
                end = cluster.now() + 1
                while cluster.now() < end:
                    began = cluster.now()
                    for records in first.poll(timeout_ms=20).values():
                        read += records
                    longest = max(longest, cluster.now() - began)
                    assert second.poll(timeout_ms=0) == {}
                assert longest < 0.1
                assert len(first.assignment()) == 4 and not second.assignment()
                if protocol == 'consumer':  # the classic one takes all away for a rebalance
                    assert len({record.partition for record in read}) >= 2


def test_a_member_takes_over_where_a_commit_that_took_long_ended(cluster, protocol):
    write_each(cluster, 10)
    with member(cluster, protocol, auto_commit_interval_ms=60_000) as first:
        assert len(poll_until(first, 40)) == 40
        with cluster.faults.add(Error(COORDINATOR_NOT_AVAILABLE), 'OffsetCommit', times=None):
            with member(cluster, protocol) as second:
                poll_until_asked(cluster, first, second)
                assert not second.assignment()
                cluster.faults.clear()  # the coordinator is back
                end = cluster.now() + SECONDS
                while len(second.assignment()) < 2:
                    assert not first.poll(timeout_ms=20) and not second.poll(timeout_ms=20)
                    assert cluster.now() < end
                assert {second.committed(partition) for partition in second.assignment()} == {10}
                assert not second.poll(timeout_ms=200)


def test_partitions_go_while_those_that_stay_are_read_and_commits_are_slow(cluster):
    """What stays is read on between two polls, and its commit need not be waited for."""
    write_each(cluster, 10)
    with member(cluster, 'consumer', auto_commit_interval_ms=60_000) as first:
        assert len(poll_until(first, 40)) == 40
        with cluster.faults.add(Delay(0.15), 'OffsetCommit', times=None):
            with member(cluster, 'consumer') as second:
                deadline, number = cluster.now() + 8, 10
                while not second.assignment():
                    assert cluster.now() < deadline
                    write_each(cluster, 1, start=number)
                    first.poll(timeout_ms=30), second.poll(timeout_ms=0)
                    number += 1


def test_a_commit_before_a_rebalance_that_fails_is_logged_and_the_rebalance_goes_on(
    cluster, protocol, caplog
):
    write_each(cluster, 10)
    with member(cluster, protocol, auto_commit_interval_ms=60_000) as first:
        assert len(poll_until(first, 40)) == 40
        with cluster.faults.add(Error(TOPIC_AUTHORIZATION_FAILED), 'OffsetCommit', times=1):
            with member(cluster, protocol) as second:
                share(first, second)
    assert 'the automatic commit before a rebalance failed' in caplog.text


def test_a_step_may_be_taken_back_at_any_moment(cluster):
    """In a turn of the thread in the background, between two lines of who polls."""
    with consumer(cluster) as made:
        step = RebalanceStep(made._engine.loop, StepKind.REVOKE, [], [], False, 1.0)
        assert step.withdraw()
        made._engine.member = Going(step)
        try:
            made._modern._steps.run()
        finally:
            made._engine.member = None


class Going:
    """A member that puts nothing up any more once somebody has looked."""

    def __init__(self, step):
        self._steps = [step]

    @property
    def step(self):
        return self._steps.pop() if self._steps else None


@pytest.mark.parametrize('what', ['_has_committed', 'stop_iterating'])
def test_ctrl_c_in_a_rebalance_leaves_nothing_half_done(cluster, protocol, what, monkeypatch):
    """The next poll does the step, commit included, and no step stays begun for ever."""

    def interrupted(*arguments):
        if first.assignment() and first._engine.member.step is not None:
            monkeypatch.undo()
            raise KeyboardInterrupt
        return usual(*arguments)

    with member(cluster, protocol) as first:
        share(first)
        steps = first._modern._steps
        part = steps if what == '_has_committed' else steps._collector
        usual = getattr(part, what)
        monkeypatch.setattr(part, what, interrupted)
        with member(cluster, protocol) as second:
            with pytest.raises(KeyboardInterrupt):
                poll_together(first, second)
            if what == '_has_committed':
                assert len(first.assignment()) == 4, 'given up before it is committed'
            share(first, second)


def test_ctrl_c_while_partitions_come_does_not_hold_them_back(cluster, protocol, monkeypatch):
    write(cluster, 5)

    def interrupted():
        if made.assignment():
            monkeypatch.undo()
            raise KeyboardInterrupt
        usual()

    with member(cluster, protocol) as made:
        usual = made._engine.nudge
        monkeypatch.setattr(made._engine, 'nudge', interrupted)
        with pytest.raises(KeyboardInterrupt):
            share(made)
        assert len(poll_until(made, 5)) == 5


@pytest.mark.parametrize('error', [KeyboardInterrupt, RuntimeError, MemoryError, KafkaError])
def test_a_listener_that_an_exception_kept_from_being_told_is_told_first(
    cluster, protocol, error, monkeypatch
):
    """It may be the one that seeks: no record is returned before it has run."""
    write(cluster, 5)
    listener = Losing()

    def interrupted(what, *arguments):
        if what == 'on_partitions_assigned':
            monkeypatch.undo()
            raise error
        usual(what, *arguments)

    with member(cluster, protocol, listener) as made:
        steps = made._modern._steps
        usual = steps._tell
        monkeypatch.setattr(steps, '_tell', interrupted)
        with pytest.raises(error):
            poll_together(made)
        assert 'assigned' not in dict(listener.seen)
        records = []
        deadline = cluster.now() + SECONDS
        while not records and cluster.now() < deadline:
            records += made.poll(20)
        assert records and len(dict(listener.seen)['assigned']) == 4


def poll_together(*consumers):
    for _ in range(int(SECONDS / 0.02)):
        for each in consumers:
            each.poll(timeout_ms=20)


def test_listeners_of_3_0_are_told_of_the_end(cluster, protocol):
    listener = Losing()
    with member(cluster, protocol, listener) as made:
        share(made)
    assert [(what, len(partitions)) for what, partitions in listener.seen if partitions] == [
        ('assigned', 4),
        ('revoked', 4),
    ]


def test_coroutines_of_a_listener_are_run(cluster, protocol):
    seen = []

    class Asynchronous(AsyncConsumerRebalanceListener):
        async def on_partitions_assigned(self, assigned):
            seen.append(len(assigned))

    with member(cluster, protocol, Asynchronous()) as made:
        share(made)
    assert seen[-1] == 4


def test_coroutines_of_a_listener_may_await_commits(cluster, protocol):
    write(cluster, 5)
    seen = []

    class Committing(AsyncConsumerRebalanceListener):
        async def on_partitions_revoked(self, revoked):
            if revoked:
                seen.append(await made.commit_async())
                with pytest.raises(CommitFailedError):
                    await made.commit_async()
                with pytest.raises(TypeError, match='only futures'):
                    await asyncio.sleep(0)

    with member(cluster, protocol, Committing(), enable_auto_commit=False) as made:
        poll_until(made, 5)
        faults = iter([None])
        usual = made._engine.commits.commit

        async def commit(*arguments):
            for _ in faults:
                return await usual(*arguments)
            raise CommitFailedError('refused')

        made._engine.commits.commit = commit
    (stored,) = seen
    assert max(offset.offset for offset in stored.values()) == 5
    with consumer(cluster, group_id='g') as other:
        places = [other.committed(partition) for partition in stored]
    assert places == [offset.offset for offset in stored.values()]


def test_a_listener_that_raises_does_not_hold_the_rebalance_up(cluster, protocol, caplog):
    class Raising(ConsumerRebalanceListener):
        def on_partitions_assigned(self, assigned):
            if assigned:
                raise ArithmeticError('wrong')

    class Telling(Raising):
        def on_partitions_lost(self, lost):
            pass

    with member(cluster, protocol, Raising()) as made:
        share(made)
    assert 'on_partitions_assigned() of a rebalance listener failed' in caplog.text
    with member(cluster, protocol, Telling()) as made:
        with pytest.raises(ListenerError, match='wrong'):
            share(made)
        poll_while(made, lambda: len(made.assignment()) < 4)


def test_what_was_handed_out_is_committed_before_it_goes(cluster, protocol):
    for partition in range(4):
        write(cluster, 5, partition=partition)
    with member(cluster, protocol, auto_commit_interval_ms=3600000) as first:
        poll_until(first, 20)
        with member(cluster, protocol) as second:
            share(first, second)
            assert second.poll(timeout_ms=300) == {}


def test_a_rebalance_may_be_asked_for(cluster, protocol):
    """Coordinators of KIP-848 share anew by themselves, and nobody can ask them for more."""
    with consumer(cluster) as alone, pytest.raises(IllegalStateError):
        alone.enforce_rebalance()
    with member(cluster, protocol) as made:
        share(made)
        before = made.group_metadata().generation_id
        made.enforce_rebalance('of the program')
        if protocol == 'classic':
            poll_while(made, lambda: made.group_metadata().generation_id == before)
        share(made)
        made.poll(timeout_ms=100)
        assert made.group_metadata().state == '<stable>'


def test_a_program_that_does_not_poll_loses_its_partitions(cluster, protocol):
    listener = Losing()
    options = {'max_poll_interval_ms': 300, 'heartbeat_interval_ms': 50}
    with member(cluster, protocol, listener, **options) as made:
        share(made)
        rest(made, 1.0)
        with member(cluster, protocol) as other:
            share(other)
            share(made, other)
    assert ('lost', 4) in [(what, len(partitions)) for what, partitions in listener.seen]


def test_who_was_left_out_is_fenced_with_what_it_was_handed_out(cluster, protocol):
    """Offsets without a generation would be taken from anybody."""
    write(cluster, 1)
    with member(cluster, protocol, max_poll_interval_ms=400, heartbeat_interval_ms=100) as made:
        poll_until(made, 1)
        before = made.group_metadata()[:3]
        engine = made._engine
        assert engine.wait(lambda: engine.identity().generation_id < 0, SECONDS)
        assert made.group_metadata()[:3] == before
        assert before[1] > 0 and before[2]
        poll_while(made, lambda: made.group_metadata()[:3] == before)
        assert made.group_metadata().generation_id > 0
        made.unsubscribe()
        assert made.group_metadata().generation_id < 0


def test_a_member_of_a_long_handler_stays(cluster, protocol):
    options = {'session_timeout_ms': 6000, 'heartbeat_interval_ms': 100}
    with member(cluster, protocol, **options) as made:
        share(made)
        before = made.group_metadata()
        rest(made, 10.0)
        made.poll(timeout_ms=100)
        assert made.group_metadata() == before


def test_figures_tell_of_the_group(protocol):
    options = {'heartbeat_interval_ms': 50}
    with Cluster(**BROKERS) as cluster, member(cluster, protocol, **options) as made:
        share(made)
        found = {}
        deadline = time.monotonic() + SECONDS
        while not found.get('heartbeat-rate') or not found['rebalance-latency-total']:
            assert time.monotonic() < deadline, found
            made.poll(timeout_ms=50)
            found = made.metrics()['consumer-coordinator-metrics']
        assert found['last-heartbeat-seconds-ago'] >= 0
        if protocol == 'classic':
            assert found['join-rate'] > 0 < found['sync-rate']
