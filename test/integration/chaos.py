"""Send records while brokers are killed, and let another client tell what became of each.

    python -m test.integration.chaos --release 4.4.0 --rounds 5 --records 200000 --kills 5 --seed 1
    python -m test.integration.chaos --rounds 5 --transactions
    python -m test.integration.chaos --rounds 5 --raise thread --finalizers

Owns the figure "0 lost, 0 duplicated, order per key kept, every future resolved": programs with a
KafkaProducer as its users write them, one that is idempotent and one with transactions; leaders,
controllers and coordinators killed with SIGKILL at moments that a seed decides, and started again.
With ``--raise`` an exception is raised into the sending thread about once a second: by a signal's
handler in the main thread, or from outside in another one (interrupting.py). With ``--finalizers``
the garbage collector runs finalizers that send through the same producer. chaos_judge.py says what
must hold. A line of figures is printed for each round. Does not own: starting brokers (servers/).
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import logging
import random
import sys
import threading
import time
from collections import Counter
from typing import NamedTuple

from kafka import KafkaProducer
from kafka.errors import IllegalStateError, KafkaError, KafkaTimeoutError
from kafka.protocol.admin.cluster import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from kafka.protocol.metadata import MetadataRequest
from kafka.structs import OffsetAndMetadata, TopicPartition
from servers.cluster import Cluster
from servers.releases import chosen
from test.integration.chaos_judge import (
    Judgement,
    Told,
    Transaction,
    judge,
    judge_transactions,
    key_of,
    read_log,
    value_of,
)
from test.integration.failover import CONFIG, Killer
from test.integration.interrupting import (
    Interrupted,
    Interrupter,
    Shutdown,
    TimeLimit,
    Uninterrupted,
)
from test.integration.wire import Wire, coordinator_of, end_of

PARTITIONS = 6
PER_SECOND = 4000
SLOWLY = 400  # while the records are ahead of the kills: brokers take long to come back
BURST = 50
#: How long anything may take on a busy machine, and how long a record may in a transaction: less
#: than some fail-overs, so that some transactions have to be aborted and a new epoch begun.
PATIENCE_SECONDS = 300
#: For --slow: brokers that get little of a processor would depose each other for ever.
SLOW = {
    'controller.quorum.election.timeout.ms': '10000',
    'controller.quorum.election.backoff.max.ms': '10000',
    'controller.quorum.fetch.timeout.ms': '20000',
    'controller.quorum.request.timeout.ms': '20000',
    'broker.session.timeout.ms': '30000',
    'replica.lag.time.max.ms': '60000',
}
DELIVERY_SECONDS = 12

# ---------------------------------------------------------------- the programs


class Program:
    """What both programs share: records with rising numbers, at a pace, until all are killed.

    Attributes: sent; reached: so many were acknowledged; errors: that the program met, counted;
    interrupter: through which calls of the producer are made.
    """

    #: Whether finalizers send too, and how many objects with one are made for so many records.
    has_finalizers = False
    PER_FINALIZER = 20

    def __init__(self, cluster, topic, records, killer, chance):
        self.cluster, self.topic, self.records = cluster, topic, records
        self.killer, self.chance = killer, chance
        self.sent = self.reached = 0
        self.errors = Counter()
        self.producer = None
        self.interrupter = Uninterrupted()

    def make(self, **options):
        """Return a producer that needs all copies and waits long."""
        return KafkaProducer(
            bootstrap_servers=self.cluster.bootstrap,
            acks='all',
            enable_idempotence=True,
            linger_ms=5,
            request_timeout_ms=5000,
            max_block_ms=PATIENCE_SECONDS * 1000,
            **options,
        )

    def goes_on(self):
        """Tell whether more has to be sent: all, and more until the last was killed."""
        return self.sent < self.records or not self.killer.has_killed_all.is_set()

    def take(self, count):
        """Return the next numbers."""
        first, self.sent = self.sent, self.sent + count
        return range(first, self.sent)

    def send(self, numbers, transaction=0):
        """Send records at a pace that lets brokers come back.

        Returns: {number: future}; None for a record whose call was interrupted.
        """
        futures = {}
        part = self.records / max(1, len(self.killer.moments))
        for start in range(numbers.start, numbers.stop, BURST):
            begun = time.monotonic()
            for number in range(start, min(start + BURST, numbers.stop)):
                futures[number] = self.send_one(number, transaction)
                if self.has_finalizers and not number % self.PER_FINALIZER:
                    Dropped(self)
            is_ahead = start > part * (len(self.killer.kills) + 1)
            pace = BURST / (SLOWLY if is_ahead else PER_SECOND)
            time.sleep(max(0.0, begun + pace - time.monotonic()))
        return futures

    def send_one(self, number, transaction=0):
        """Send a record; return its future, None if the call was interrupted."""
        value, key = value_of(number, transaction), key_of(number)
        try:
            return self.interrupter.call(self.producer.send, self.topic, value, key)
        except Interrupted:
            self.errors['interrupted send'] += 1
            return None

    def insist(self, function, *arguments):
        """Make a call, again after each interruption."""
        while True:
            try:
                return self.interrupter.call(function, *arguments)
            except Interrupted as error:
                self.errors['interrupted %s' % error] += 1


class Dropped:
    """An object in a cycle, which only the collector finds; its finalizer sends a record."""

    def __init__(self, program):
        self.program, self.cycle = program, self

    def __del__(self):
        try:
            self.program.send_late()
        except (TimeLimit, Shutdown):  # nobody is above a finalizer
            self.program.interrupter.catch()


class IdempotentProgram(Program):
    """Sends, and looks only at the end what became of each record."""

    kinds = ('leader', 'controller')

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.futures = {}
        self.late = 0  # records that finalizers have sent

    def run(self):
        """Send everything; return what was told of each number."""
        self.producer = self.make(delivery_timeout_ms=PATIENCE_SECONDS * 1000)
        while self.goes_on():
            self.futures.update(self.send(self.take(BURST)))
            while self.reached < self.sent and self.is_done(self.reached):
                self.reached += 1
            if self.sent - self.reached > 100_000:  # they wait for a leader
                time.sleep(0.1)
        gc.collect()  # what finalizers send comes before the flush
        self.has_finalizers = False
        try:
            self.insist(self.producer.flush, PATIENCE_SECONDS)
        except KafkaTimeoutError as error:
            self.errors[type(error).__name__] += 1
        told = {number: told_by(future) for number, future in self.futures.items()}
        self.insist(self.producer.close, PATIENCE_SECONDS)
        self.reached = sum(each.is_acknowledged for each in told.values())
        return told

    def is_done(self, number):
        """Return True if the outcome of a record is known, or its call was interrupted."""
        future = self.futures.get(number)
        return future is None or future.is_done

    def send_late(self):
        """Send a record from a finalizer, wherever the collector has found it."""
        if not self.has_finalizers:
            return
        self.late += 1
        number, self.sent = self.sent, self.sent + 1
        self.futures[number] = None  # in case that this call is interrupted itself
        try:
            self.futures[number] = self.producer.send(self.topic, value_of(number), key_of(number))
        except IllegalStateError as error:  # in a turn, and nothing is known of the topic yet
            self.errors['late send: %s' % type(error).__name__] += 1

    def judge(self, logs, told):
        """Return the judgement."""
        return judge(logs, told)


def told_by(future):
    """Return what a future says; None stands for a call that was interrupted."""
    if future is None:
        return Told(error=Interrupted.__name__)
    if not future.is_done:
        return Told()
    if future.exception is not None:
        return Told(error=type(future.exception).__name__)
    metadata = future.value
    return Told(metadata.partition, metadata.offset)


def halves(numbers):
    """Return the parts in which aborted records go again, the first part last.

    On a busy machine many records take longer than it takes until the next exception is raised: as
    a whole they would never be committed.
    """
    middle = (numbers.start + numbers.stop + 1) // 2
    parts = range(middle, numbers.stop), range(numbers.start, middle)
    return [part for part in parts if part]


class TransactionalProgram(Program):
    """Sends in transactions, some of which it aborts or leaves; what was not committed goes again.

    Attributes: transactions: by number, how each ended; offsets: the last that was committed with a
    transaction, None if one of an unknown end had some.
    """

    kinds = ('leader', 'controller', 'coordinator')

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.name = 'chaos-%s' % self.topic
        self.transactions = {}
        self.unresolved = 0
        self.count = 0

    def run(self):
        """Send everything."""
        self.renew()
        while self.goes_on():
            waiting = [self.take(self.chance.choice([1, 50, 500, 2000]))]
            while waiting:
                numbers = waiting.pop()
                if self.transact(numbers) == 'aborted':
                    waiting += halves(numbers)
            self.reached = self.sent
        self.insist(self.producer.close, PATIENCE_SECONDS)

    def renew(self):
        """Begin with a new producer, which ends what the last one left open."""
        if self.producer is not None:
            self.insist(self.producer.close, 0)
        self.producer = self.make(
            transactional_id=self.name,
            delivery_timeout_ms=DELIVERY_SECONDS * 1000,
            transaction_timeout_ms=60000,
        )
        self.insist(self.producer.init_transactions)

    def transact(self, numbers):
        """Make one transaction; return how it ended."""
        self.count += 1
        name, end = self.count, 'unknown'
        # Until it is known better, as if the program were killed.
        self.transactions[name] = Transaction(numbers, end)
        wish, futures = self.chance.random(), {}
        is_asked, call = False, self.interrupter.call
        try:
            call(self.producer.begin_transaction)
            futures = self.send(numbers, name)
            if wish < 0.2:
                offsets = {TopicPartition(self.topic, 0): OffsetAndMetadata(name, '')}
                call(self.producer.send_offsets_to_transaction, offsets, self.name)
            if wish > 0.96:
                end = 'aborted'  # by who comes next
                self.renew()
            elif wish > 0.85:
                call(self.producer.abort_transaction)
                end = 'aborted'
            elif None in futures.values():  # nobody knows whether these records are part of it
                raise Interrupted('send')
            else:
                is_asked = True
                call(self.producer.commit_transaction)
                end = 'committed'
        except (KafkaError, Interrupted) as error:
            self.errors[type(error).__name__] += 1
            end = self.give_up(is_asked, isinstance(error, Interrupted))
        self.transactions[name] = Transaction(numbers, end)
        self.check(futures, end)
        return end

    def give_up(self, is_asked, is_interrupted):
        """Abort; if that cannot be, begin again. Return what that says of the transaction."""
        try:
            self.interrupter.call(self.producer.abort_transaction)
            return 'unknown' if is_asked and is_interrupted else 'aborted'
        except (KafkaError, Interrupted) as error:
            self.errors['abort: %s' % type(error).__name__] += 1
        self.renew()
        return 'unknown' if is_asked else 'aborted'

    def check(self, futures, end):
        """Count the futures that are not resolved, or not as the end of the transaction says."""
        for future in futures.values():
            if future is not None:
                is_good = future.is_done and (end != 'committed' or future.exception is None)
                self.unresolved += not is_good

    def judge(self, logs, _):
        """Return the judgement."""
        return judge_transactions(logs, self.transactions, self.unresolved)


# ---------------------------------------------------------------- the crashes


class ChaosKiller(Killer):
    """Kills leaders, controllers and coordinators by turns; program says which there are."""

    def kill_a_leader(self):
        """Kill the next broker, and start it again a little later."""
        kinds = self.program.kinds
        kind = kinds[len(self.kills) % len(kinds)]
        time.sleep(self.chance.random() * 0.2)
        node = self.find(kind)
        self.cluster.kill(node)
        self.kills.append((self.program.reached, node, kind))
        if len(self.kills) == len(self.moments):
            self.has_killed_all.set()
        time.sleep(self.chance.random() * 4)
        self.cluster.restart(node)

    def find(self, kind):
        """Return the broker that has an office now; one that runs."""
        if kind == 'leader':
            return self.cluster.wait_for_leader(self.topic, self.chance.randrange(PARTITIONS))
        ask = controller_of if kind == 'controller' else self.coordinator
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            try:
                node = ask(self.cluster)
            except (OSError, AssertionError):  # it dies, or is not there yet
                node = -1
            if node in self.cluster.nodes:
                return node
            time.sleep(0.1)
        raise AssertionError('nobody is the %s' % kind)

    def coordinator(self, cluster):
        """Return the coordinator of the program's transactions."""
        return coordinator_of(cluster, self.program.name)


def controller_of(cluster):
    """Return the active controller; -1 if there is none."""
    with Wire(cluster.address(cluster.nodes[0])) as wire:
        if cluster.release.has_zookeeper:
            return wire.ask(MetadataRequest(topics=[]), 1).controller_id
        partition = DescribeQuorumRequestPartitionData(partition_index=0)
        topic = DescribeQuorumRequestTopicData(
            topic_name='__cluster_metadata', partitions=[partition]
        )
        answer = wire.ask(DescribeQuorumRequest(topics=[topic]), 0)
        return answer.topics[0].partitions[0].leader_id if answer.topics else -1


def wait_for_markers(cluster, topic, partition):
    """Wait until no transaction is open in a partition: markers come after a commit returns."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    ends = []
    while time.monotonic() < deadline:
        try:
            leader = cluster.wait_for_leader(topic, partition)
            with Wire(cluster.address(leader)) as wire:
                ends = [end_of(wire, topic, partition, isolation) for isolation in (0, 1)]
            if ends[0] == ends[1] >= 0:
                return
        except (OSError, AssertionError):  # it has only just become the leader
            pass
        time.sleep(0.2)
    raise AssertionError('%s-%d: end, and end of what is committed: %r' % (topic, partition, ends))


# ---------------------------------------------------------------- a round


class PatientCluster(Cluster):
    """A cluster on a machine that has other things to do."""

    start_seconds = PATIENCE_SECONDS


#: What a producer logs that renew() closes at once; the judge looks at these records anyway.
ABANDONED = 'records were not acknowledged and may be lost'


class Mistakes(logging.Handler):
    """Notes what the package logs as an error of its own, less what programs do on purpose."""

    def __init__(self):
        super().__init__(logging.ERROR)
        self.texts = []

    def emit(self, record):
        """Note one."""
        text = self.format(record)
        if ABANDONED not in text:
            self.texts.append(text)


class Report(NamedTuple):
    """The figures of one round."""

    title: str
    seconds: float
    sent: int
    kills: list
    transactions: Counter
    errors: Counter
    mistakes: list
    judgement: Judgement

    @property
    def is_good(self):
        """Whether everything is as it should be."""
        return self.judgement.is_good and not self.mistakes

    def __str__(self):
        kinds = Counter(kind for _, _, kind in self.kills)
        ends = ', '.join('%d %s' % (n, end) for end, n in sorted(self.transactions.items()))
        return '%s: %s, %.0f s, sent %d; %skilled %s; met %s; %s%s' % (
            'good' if self.is_good else 'BAD',
            self.title,
            self.seconds,
            self.sent,
            'transactions: %s; ' % ends if ends else '',
            ', '.join('%d %s' % (n, kind) for kind, n in sorted(kinds.items())) or 'nobody',
            dict(self.errors) or 'no error',
            self.judgement,
            '; MISTAKES: %s' % self.mistakes[:3] if self.mistakes else '',
        )


@contextlib.contextmanager
def finalizers(program):
    """Let the collector run often, and find objects whose finalizers send."""
    thresholds = gc.get_threshold()
    program.has_finalizers = True
    gc.set_threshold(50)
    try:
        yield
    finally:
        program.has_finalizers = False
        gc.set_threshold(*thresholds)


def run_interrupted(program, seed, every):
    """Let a program run while exceptions are raised into its calls; return what it returns."""
    program.interrupter = Interrupter(every, seed)
    try:
        return program.run()
    finally:
        program.interrupter.end()


def run_in_thread(function, *arguments):
    """Call a function in a thread of its own; return or raise what it does."""
    results, errors = [], []

    def target():
        try:
            results.append(function(*arguments))
        except BaseException as error:  # raised below
            errors.append(error)

    thread = threading.Thread(target=target, name='program')
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def run_program(program, seed, raises, every):
    """Run a program as it is asked for; return what it returns."""
    if raises == 'signal':
        return run_interrupted(program, seed, every)
    if raises == 'thread':
        return run_in_thread(run_interrupted, program, seed, every)
    return program.run()


def run(
    cluster,
    topic,
    records,
    kills,
    seed,
    transactions=False,
    raises=None,
    every=1.0,
    has_finalizers=False,
):
    """Let a program send to a new topic of three brokers while these die; return the Report.

    Arguments: raises: 'signal' or 'thread': how exceptions are raised into its calls, None: not;
    every: the mean seconds between two of them; has_finalizers: whether finalizers send through the
    same producer.
    """
    started, chance = time.monotonic(), random.Random(seed)
    cluster.create_topic(topic, PARTITIONS, config=CONFIG)
    killer = ChaosKiller(cluster, topic, kills, records, chance)
    kind = TransactionalProgram if transactions else IdempotentProgram
    program = kind(cluster, topic, records, killer, random.Random(seed + 1))
    killer.program = program
    mistakes = Mistakes()
    logging.getLogger('kafka').addHandler(mistakes)
    killer.start()
    try:
        with finalizers(program) if has_finalizers else contextlib.nullcontext():
            told = run_program(program, seed, raises, every)
    finally:
        killer.gives_up.set()
        killer.join()
        logging.getLogger('kafka').removeHandler(mistakes)
    if killer.error is not None:
        raise killer.error
    seconds = time.monotonic() - started
    cluster.restart_killed()
    logs = {}
    for partition in range(PARTITIONS):
        wait_for_markers(cluster, topic, partition)
        logs[partition] = read_log(cluster.bootstrap, topic, partition)
    ends = Counter(each.end for each in getattr(program, 'transactions', {}).values())
    program.errors['hit'] = program.interrupter.hits
    program.errors['sent by finalizers'] = getattr(program, 'late', 0)
    if program.interrupter.swallowed:
        mistakes.texts.append('%d exceptions were swallowed' % program.interrupter.swallowed)
    return Report(
        '%s %s seed %d'
        % (cluster.release.name, 'transactions' if transactions else 'idempotent', seed),
        seconds,
        program.sent,
        killer.kills,
        ends,
        +program.errors,
        mistakes.texts,
        program.judge(logs, told),
    )


def main(arguments=None):
    """Run rounds; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--release', default='4.4.0')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--records', type=int, default=200_000, help='in each round, at least')
    parser.add_argument('--kills', type=int, default=5, help='in each round')
    parser.add_argument('--seed', type=int, help='of the first round')
    parser.add_argument('--transactions', action='store_true')
    parser.add_argument(
        '--raise',
        dest='raises',
        choices=['signal', 'thread'],
        help='raise exceptions into calls, in the main thread or in another one',
    )
    parser.add_argument('--every', type=float, default=1.0, help='mean seconds between two of them')
    parser.add_argument(
        '--finalizers', action='store_true', help='let finalizers send (without transactions)'
    )
    parser.add_argument(
        '--slow', action='store_true', help='the machine is busy: let brokers wait longer'
    )
    options = parser.parse_args(arguments)
    seed = random.randrange(10**6) if options.seed is None else options.seed
    bad = 0
    (release,) = chosen(options.release)
    with PatientCluster(release, 3, SLOW if options.slow else None) as cluster:
        for number in range(seed, seed + options.rounds):
            topic = 'chaos-%d' % number
            found = run(
                cluster,
                topic,
                options.records,
                options.kills,
                number,
                options.transactions,
                options.raises,
                options.every,
                options.finalizers and not options.transactions,
            )
            sys.stdout.write('%s\n' % (found,))
            sys.stdout.flush()
            bad += not found.is_good
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
