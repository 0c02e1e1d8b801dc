"""One run of the simulation: what a seed makes of it, from the brokers' release to the checks.

Owns the programs that are run, one that sends idempotently and one that sends in transactions, and
what each of them may expect. ``run(seed)`` repeats a run event by event, in any process: nothing
may ask the machine's clock, chance that no seed made, or the order of a set.
"""

from __future__ import annotations

import hashlib
import random

from kafka.errors import IllegalStateError, KafkaError, KafkaTimeoutError
from kafka.producer.transaction_calls import GroupMember
from kafka.producer.transaction_table import TxnState
from kafka.structs import OffsetAndMetadata, TopicPartition
from kafka.testing import MemoryCluster
from test.raising import Interruption
from test.simulation.checks import (
    Wrong,
    check_errors,
    check_partition,
    check_producer,
    committed,
    hearing,
    repeatable,
)
from test.simulation.producer import HAS_POINTS, Options, SimulatedProducer
from test.simulation.trouble import Trouble

TOPIC = 't'
GROUP = 'readers'
ID = 'pay'
RELEASES = ['0.11', '1.1', '2.4', '2.8', '3.5', '3.9', '4.0', '4.4', '4.4']
#: Before 3.6 leaders do not ask whether a batch is in an open transaction (KIP-890): one that was
#: given up while it was on its way may arrive after the abort, hang there, and be committed by the
#: next transaction. No client prevents that.
VERIFIED_SINCE = (3, 6)
PARTITIONS = 3
#: How often another producer takes over after a transaction.
FENCED = 0.2
#: This part of the calls is ended by an exception at some point, or has another inside.
RAISING = 0.03
#: Of the programs without transactions this part sends a record when the one before is stored.
WAITING = 0.5
#: So long trouble lasts, and so long everything may take to come to its end afterwards.
TROUBLE_SECONDS = 40.0
PATIENCE_SECONDS = 400.0


class Run:
    """One run.

    Attributes: sent: by partition, (value, future) in the order of sending; forbidden: values that
    nobody may see; history: a digest of all that happened, once it is over.
    """

    def __init__(self, seed):
        self.seed = seed
        self.chance = random.Random('run %d' % seed)
        self.raising = random.Random('raising %d' % seed)
        self.release = self.chance.choice(RELEASES)
        self.rate = self.chance.choice([0.0, 0.2, 0.5, 1.0])
        self.is_transactional = self.chance.random() < 0.5
        self.sent = {partition: [] for partition in range(PARTITIONS)}
        self.forbidden = set()
        self.wanted = set()  # values of committed transactions
        self.either = []  # values of transactions whose end nobody knows, a set for each
        self.outlived = []  # producers that were fenced
        self.count = 0
        self.most_used = 0
        self.history = ''

    def __repr__(self):
        return '<Run %d: %s on %s, trouble %s>' % (
            self.seed,
            'transactions' if self.is_transactional else 'idempotent',
            self.release,
            self.rate,
        )

    def options(self):
        """Return what the producer is told."""
        chance = self.chance
        return Options(
            transactional_id=ID if self.is_transactional else None,
            transaction_timeout=chance.choice([5.0, 60.0]),
            linger=chance.choice([0.0, 0.005, 0.05]),
            batch_size=chance.choice([120, 300, 2000]),
            buffer_memory=chance.choice([4000, 32 * 1024]),
            delivery_timeout=chance.choice([1.5, 4.0, 30.0, 120.0]),
            request_timeout=chance.choice([1.0, 3.0]),
            max_block=chance.choice([2.0, 60.0]),
            max_in_flight=chance.choice([1, 2, 5]),
        )

    def go(self):
        """Do it all. Raises Wrong."""
        with hearing(self.seed), MemoryCluster(
            brokers=3,
            version=self.release,
            seed=self.seed,
            topics={TOPIC: PARTITIONS},
            message_max_bytes=self.chance.choice([250, 1000012]),
        ) as cluster:
            options = self.options()
            producer = SimulatedProducer(cluster, options, self.chance)
            producer.bootstrap(TOPIC)
            trouble = Trouble(cluster, self.chance, TOPIC, [ID, GROUP], self.rate)
            trouble.begin(TROUBLE_SECONDS)
            if self.is_transactional:
                producer = self.send_in_transactions(cluster, producer, options)
            else:
                self.send_idempotently(producer)
            trouble.end()
            self.finish(cluster, producer)
            producer.close()
            self.history = self.digest(cluster)

    # ------------------------------------------------------------ programs

    def send(self, producer):
        """Send one record somewhere; return its value, None if there was no room."""
        partition = self.chance.randrange(PARTITIONS)
        self.count += 1
        value = b'%06d' % self.count + b'.' * self.chance.choice([0, 10, 60])
        try:
            future = self.send_somehow(producer, partition, value)
        except (KafkaTimeoutError, Interruption):  # then it is stored once, or not at all
            return None
        self.sent[partition].append((value, future))
        self.most_used = max(self.most_used, producer.accumulator.memory.used)
        return value

    def send_somehow(self, producer, partition, value):
        """Send a record; an exception may end the call, or another come in the middle of it."""
        chance = self.raising
        if not HAS_POINTS or chance.random() >= RAISING:
            return producer.send(TOPIC, partition, value)
        if self.is_transactional or chance.random() < 0.5:
            send = producer.send
            return producer.interrupted(chance, send, TOPIC, partition, value)
        other = (partition + 1) % PARTITIONS
        self.count += 1
        inner = b'%06d' % self.count

        def another():
            try:
                self.sent[other].append((inner, producer.send(TOPIC, other, inner)))
            except KafkaTimeoutError:
                pass  # no room, which is not waited for there

        return producer.send_with_another(chance, TOPIC, partition, value, another)

    def send_idempotently(self, producer):
        """Send and rest by turns; some programs wait for each record before the next one."""
        waits = random.Random('waits %d' % self.seed).random() < WAITING
        for _ in range(self.chance.choice([20, 80])):
            try:
                self.send(producer)
            except KafkaError:
                if not producer.state.is_fatal:
                    raise
                return
            if waits:
                producer.wait_for_all()
            if self.chance.random() < 0.2:
                producer.rest(self.chance.uniform(0.0, 2.0))

    def send_in_transactions(self, cluster, producer, options):
        """Make transactions, and a new producer where one has come to its end; return the last."""
        producer = self.initialized(cluster, producer, options)
        for _ in range(self.chance.choice([3, 8])):
            values = set()
            try:
                producer.driver.begin_transaction()
                self.one_transaction(producer, values)
            except KafkaError as error:
                self.give_up(producer, values, error)
            if producer.state.is_fatal:
                producer = self.followed(cluster, producer, options)
            elif self.chance.random() < FENCED:
                producer = self.fenced(cluster, producer, options)
        return producer

    def followed(self, cluster, producer, options):
        """End a producer that has come to its end; return the next."""
        self.drain(producer)
        producer.close()
        return self.initialized(cluster, SimulatedProducer(cluster, options, self.chance), options)

    def fenced(self, cluster, older, options):
        """Let a newer producer take over in the middle of a transaction; return it.

        The older one knows nothing of that, and goes on.
        """
        values = set()
        try:
            older.driver.begin_transaction()
            self.send_some(older, values)
        except KafkaError as error:
            self.give_up(older, values, error)
        newer = self.initialized(cluster, SimulatedProducer(cluster, options, self.chance), options)
        self.outlived.append(older)
        own = set()
        try:
            newer.driver.begin_transaction()
            self.send_some(newer, own)
            self.outlive(older, values)
            self.send_some(newer, own)
            self.again(newer.driver.commit_transaction)
            self.wanted |= own
            self.check_futures(own, 'committed')
        except KafkaError as error:
            self.give_up(newer, own, error)
        return self.followed(cluster, newer, options) if newer.state.is_fatal else newer

    def outlive(self, older, values):
        """Let a producer that was fenced go on; nothing that it writes may be seen.

        Arguments: values: of its open transaction.
        """
        for _ in range(2):
            try:
                if older.state.state is not TxnState.IN_TRANSACTION:
                    older.driver.begin_transaction()
                    values = set()
                self.send_some(older, values)
                self.again(older.driver.commit_transaction)
                if values:
                    raise Wrong('a producer that was fenced has committed')
            except KafkaError as error:
                self.forbidden |= values
                self.give_up(older, values, error)

    def initialized(self, cluster, producer, options):
        """Return a producer that is ready for a transaction."""
        for _ in range(100):
            try:
                if not producer.pool.cluster.partitions_for_topic(TOPIC):
                    producer.bootstrap(TOPIC)
                self.again(producer.driver.init_transactions)
                return producer
            except KafkaError:
                if producer.state.is_fatal:
                    producer.close()
                    producer = SimulatedProducer(cluster, options, self.chance)
                producer.rest(1.0)
        raise Wrong('init_transactions() never goes well')

    def again(self, verb):
        """Call a verb until it says how it went."""
        for _ in range(int(PATIENCE_SECONDS)):
            try:
                return verb()
            except KafkaTimeoutError:
                pass
        raise Wrong('%s() never comes to its end' % verb.__name__)

    def one_transaction(self, producer, values):
        """Send some records, and the offsets of a group, and commit or abort."""
        chance = self.chance
        self.send_some(producer, values)
        if chance.random() < 0.3:
            offsets = {TopicPartition(TOPIC, 0): OffsetAndMetadata(self.count, '')}
            self.again(
                lambda: producer.driver.send_offsets_to_transaction(offsets, GroupMember(GROUP))
            )
        if chance.random() < 0.7:
            self.again(producer.driver.commit_transaction)
            self.wanted |= values
            self.check_futures(values, 'committed')
        else:
            self.forbidden |= values
            self.again(producer.driver.abort_transaction)

    def send_some(self, producer, values):
        """Send some records, adding their values to a set."""
        for _ in range(self.chance.choice([0, 1, 5, 30])):
            value = self.send(producer)
            if value is not None:
                values.add(value)
            if self.chance.random() < 0.1:
                producer.rest(self.chance.uniform(0.0, 2.0))

    def check_futures(self, values, what):
        """Raise Wrong unless all records of a committed transaction are acknowledged."""
        for sent in self.sent.values():
            for value, future in sent:
                if value in values and not (future.is_done and future.exception is None):
                    raise Wrong('%r was %s, but its future says %r' % (value, what, future))

    def give_up(self, producer, values, error):
        """Abort after an error, or learn that the producer is finished."""
        if isinstance(error, IllegalStateError):
            raise error
        if producer.state.is_fatal:
            is_known = 'is not known' not in str(error)
            (self.forbidden.update(values) if is_known else self.either.append(values))
            return
        self.forbidden |= values
        try:
            self.again(producer.driver.abort_transaction)
        except KafkaError:
            if not producer.state.is_fatal:
                raise

    def drain(self, producer):
        """Let a producer that is finished fail what it has."""
        if not producer.flush(PATIENCE_SECONDS):
            raise Wrong('a producer that is finished keeps records: %r' % producer.accumulator)

    # ------------------------------------------------------------ the end

    def finish(self, cluster, producer):
        """Let everything come to its end, and check it."""
        raising = self.raising if HAS_POINTS and self.raising.random() < 0.3 else None
        if not producer.flush(PATIENCE_SECONDS, raising):
            raise Wrong('futures are not resolved: %r' % producer.accumulator)
        producer.rest(30.0)  # also what waits at connections that hang
        if not self.is_transactional and not producer.state.is_fatal:
            for partition in range(PARTITIONS):  # nothing is stuck
                self.sent[partition].append((b'999999', producer.send(TOPIC, partition, b'999999')))
            if not producer.flush(PATIENCE_SECONDS):
                raise Wrong('nothing new goes any more: %r' % producer.accumulator)
            if not all(self.sent[p][-1][1].exception is None for p in self.sent):
                raise Wrong('a last record failed')
        for each in self.outlived:
            self.drain(each)
            each.rest(30.0)
        producer.rest(90.0)  # brokers end what was left open
        for each in [producer, *self.outlived]:
            check_producer(each)
        for each in self.outlived:
            each.close()
        limit = producer.options.buffer_memory + 2 * producer.options.batch_size
        if self.most_used > limit:
            raise Wrong('%d bytes of memory were used, %d allowed' % (self.most_used, limit))
        self.check_logs(cluster)

    def check_logs(self, cluster):
        """Check each partition, and that transactions are whole."""
        visible = set()
        release = tuple(int(part) for part in self.release.split('.'))
        is_verified = release >= VERIFIED_SINCE or not self.is_transactional
        for partition in cluster.state.topics[TOPIC].partitions:
            seen = committed(partition.log, may_hang=not is_verified)
            sent = self.sent[partition.index]
            if not is_verified:
                lost = {value for value, f in sent if type(f.exception) is KafkaTimeoutError}
                seen = [value for value in seen if value not in lost]
            visible |= set(seen)
            if not all(future.is_done for _, future in sent):
                raise Wrong('futures of partition %d are not resolved' % partition.index)
            fine = [value for value, future in sent if future.exception is None]
            if not self.is_transactional:
                check_errors(partition.index, [future.exception for _, future in sent])
            if self.is_transactional:
                fine = [value for value in fine if value in self.wanted]
            check_partition(partition.index, seen, fine, self.forbidden)
        for values in self.either:
            if values & visible and not values <= visible:
                raise Wrong('half of a transaction is visible')

    def digest(self, cluster):
        """Return a digest of what came to the brokers when, what they keep, and what was told."""
        digest = hashlib.sha256()
        for part in (cluster.trace, cluster.requests):
            digest.update(repr(part).encode())
        for partition in cluster.state.topics[TOPIC].partitions:
            for batch in partition.log.batches:
                digest.update(batch.data)
            told = [(value, repr(f.exception)) for value, f in self.sent[partition.index]]
            digest.update(repr(told).encode())
        return digest.hexdigest()[:16]


def run(seed):
    """Make one run. Raises Wrong, or whatever else goes wrong, with the way to repeat it."""
    made = Run(seed)
    with repeatable(made, '--seed %d' % seed):
        made.go()
    return made
