"""A member of a group as a program of its own, of one of three clients, that tells all it does.

    python group_member.py '{"client": "ours", "bootstrap": "127.0.0.1:9092", ...}'

Owns the process that group_processes.py starts, kills and listens to. It reads a topic as a member
of a group and prints a line of JSON, ``[seconds, what, ...]``, for each thing that happens, in the
order in which a program sees it: ``assigned``, ``revoked`` and ``lost`` with partitions;
``records`` with a partition, offsets and numbers, when they were handed out and before they are
committed; ``committed`` with {partition: offset} when that is known; ``error``; ``closed`` at the
end, which comes with the end of standard input. The seconds are the machine's monotonic ones, the
same for all processes. The values that it reads begin with a number, as chaos_judge.py makes them.

With ``output`` it writes what it reads to another topic, exactly once: in transactions together
with the offsets. ``commits`` says who commits: the program after each poll (``sync``, ``async``),
the client (``auto``), or, on purpose wrong, the program before it has seen the records (``early``).
With ``raises`` exceptions are raised into its calls of the client, about once a second, in the main
thread or another one (interrupting.py).
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from functools import partial

POLL_SECONDS = 0.2
MAX_RECORDS = 200
#: How long the wrong member keeps what it has committed and not seen.
EARLY_SECONDS = 0.3
#: How long it tries to commit before it leaves.
END_SECONDS = 30


def say(what, *words):
    """Print a line; in one piece, as far as the system allows."""
    line = json.dumps([time.monotonic(), what, *words]) + '\n'
    data = line.encode()
    while data:
        data = data[os.write(1, data) :]


def number_of(value):
    """Return the number that a value begins with."""
    return int(bytes(value).split(b' ', 1)[0])


# ---------------------------------------------------------------- the clients


class Calls:
    """How a program calls its client: as it is, or with exceptions raised into the calls.

    Attributes: interrupted: what call() raises for a call that was hit; nothing, if none is.
    """

    def __init__(self, options):
        self.interrupter, self.interrupted = None, ()
        if options.get('raises'):
            from test.integration.interrupting import Interrupted, Interrupter

            seconds = float(options.get('every', 1.0))
            self.interrupter = Interrupter(seconds, random.randrange(10**6))
            self.interrupted = (Interrupted,)

    def call(self, function, *arguments):
        """Return what a call returns."""
        if self.interrupter is None:
            return function(*arguments)
        return self.interrupter.call(function, *arguments)

    def insist(self, function, *arguments):
        """Make a call, again after each interruption."""
        while True:
            try:
                return self.call(function, *arguments)
            except self.interrupted as error:
                say('error', 'interrupted %s' % error, '')

    def cover(self):
        """Keep what follows from being interrupted, in a callback of a call."""
        if self.interrupter is not None:
            self.interrupter.cover()

    def end(self):
        """Interrupt nothing any more; tell how often it was done."""
        if self.interrupter is not None:
            self.interrupter.end()
            say('interrupted', self.interrupter.hits, self.interrupter.swallowed)


class KafkaPythonClient:
    """KafkaConsumer of kafka-evergreen, and of kafka-python as far as it has the options."""

    def __init__(self, options):
        self.calls = calls = Calls(options)
        from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
        from kafka.structs import OffsetAndMetadata

        class Listener(ConsumerRebalanceListener):
            def on_partitions_revoked(self, revoked):
                calls.cover()
                say('revoked', sorted(each.partition for each in revoked))

            def on_partitions_assigned(self, assigned):
                calls.cover()
                say('assigned', sorted(each.partition for each in assigned))

            def on_partitions_lost(self, lost):
                calls.cover()
                say('lost', sorted(each.partition for each in lost))

        self.partition, self.offset = TopicPartition, OffsetAndMetadata
        self.topic = options['topic']
        self.consumer = KafkaConsumer(
            bootstrap_servers=options['bootstrap'],
            group_id=options['group'],
            client_id=options['name'],
            auto_offset_reset='earliest',
            enable_auto_commit=options['commits'] == 'auto',
            auto_commit_interval_ms=200,
            isolation_level=options['isolation'],
            max_poll_records=MAX_RECORDS,
            **self.of_the_group(options),
        )
        self.consumer.subscribe([self.topic], listener=Listener())

    @staticmethod
    def of_the_group(options):
        """Return the options that say how it is a member."""
        found = {}
        if options['protocol'] == 'consumer':
            found['group_protocol'] = 'consumer'
        else:
            found['partition_assignment_strategy'] = [assignor_of(options['assignor'])]
            found['session_timeout_ms'] = options['session_ms']
            found['heartbeat_interval_ms'] = min(1000, options['session_ms'] // 4)
        if options.get('instance'):
            found['group_instance_id'] = options['instance']
        if 'max_poll_ms' in options:
            found['max_poll_interval_ms'] = options['max_poll_ms']
        return found

    def poll(self):
        """Return [(partition, offset, key, value)]."""
        found = self.calls.call(self.consumer.poll, int(POLL_SECONDS * 1000))
        return [
            (each.partition, each.offset, each.key, each.value)
            for records in found.values()
            for each in records
        ]

    def commit(self, offsets):
        """Commit {partition: next offset}."""
        self.calls.call(self.consumer.commit, self._places(offsets))

    def commit_async(self, offsets, told):
        """Commit without waiting; call ``told`` if that worked."""

        def done(_, answer):
            self.calls.cover()
            if not isinstance(answer, Exception):
                told()
            else:
                say('error', type(answer).__name__, str(answer))

        commit = partial(self.consumer.commit_async, callback=done)
        self.calls.call(commit, self._places(offsets))

    def handed_out(self, offsets):
        """Take note that records were seen; for clients that are told."""

    def _places(self, offsets):
        return {
            self.partition(self.topic, each): self.offset(offset, '')
            for each, offset in offsets.items()
        }

    def owned(self):
        """Return the partitions that it has."""
        return {each.partition for each in self.consumer.assignment()}

    def close(self):
        """Leave the group."""
        self.calls.insist(self.consumer.close)
        self.calls.end()


def assignor_of(name):
    """Return the class of an assignor, as kafka-python 3.0 has them."""
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

    return {
        'range': RangePartitionAssignor,
        'roundrobin': RoundRobinPartitionAssignor,
        'sticky': StickyPartitionAssignor,
        'cooperative-sticky': CooperativeStickyAssignor,
    }[name]


class ConfluentClient:
    """confluent-kafka."""

    def __init__(self, options):
        from confluent_kafka import Consumer, TopicPartition

        self.partition, self.topic = TopicPartition, options['topic']
        config = {
            'bootstrap.servers': options['bootstrap'],
            'group.id': options['group'],
            'client.id': options['name'],
            'auto.offset.reset': 'earliest',
            'enable.auto.commit': options['commits'] == 'auto',
            'enable.auto.offset.store': False,
            'auto.commit.interval.ms': 200,
            'isolation.level': options['isolation'],
            'topic.metadata.refresh.interval.ms': 2000,
        }
        if options['protocol'] == 'consumer':
            config['group.protocol'] = 'consumer'
        else:
            config['partition.assignment.strategy'] = options['assignor']
            config['session.timeout.ms'] = options['session_ms']
            config['heartbeat.interval.ms'] = min(1000, options['session_ms'] // 4)
        if options.get('instance'):
            config['group.instance.id'] = options['instance']
        self.told = []
        self.calls = Calls({})
        self.consumer = Consumer({**config, 'on_commit': self._committed})
        self.consumer.subscribe(
            [self.topic],
            on_assign=self._telling('assigned'),
            on_revoke=self._telling('revoked'),
            on_lost=self._telling('lost'),
        )

    @staticmethod
    def _telling(what):
        return lambda _, places: say(what, sorted(each.partition for each in places))

    def _committed(self, error, _):
        if self.told:
            told = self.told.pop(0)
            if error is None:
                told()

    def poll(self):
        """Return [(partition, offset, key, value)]."""
        found = []
        for message in self.consumer.consume(MAX_RECORDS, POLL_SECONDS):
            if message.error() is None:
                found.append(
                    (message.partition(), message.offset(), message.key(), message.value())
                )
            else:
                say('error', 'KafkaError', str(message.error()))
        return found

    def commit(self, offsets):
        """Commit {partition: next offset}."""
        for each in self.consumer.commit(offsets=self._places(offsets), asynchronous=False):
            if each.error is not None:
                raise RuntimeError(str(each.error))

    def commit_async(self, offsets, told):
        """Commit without waiting; call ``told`` if that worked."""
        self.told.append(told)
        self.consumer.commit(offsets=self._places(offsets))

    def handed_out(self, offsets):
        """Let automatic commits have what was seen."""
        for place in self._places(offsets):
            try:
                self.consumer.store_offsets(offsets=[place])
            except Exception as error:  # it is another's by now
                say('error', type(error).__name__, str(error))

    def _places(self, offsets):
        return [self.partition(self.topic, each, offset) for each, offset in offsets.items()]

    def owned(self):
        """Return the partitions that it has."""
        return {each.partition for each in self.consumer.assignment()}

    def close(self):
        """Leave the group."""
        self.consumer.close()


# ---------------------------------------------------------------- what it does


class Member:
    """Reads, says so, and commits."""

    def __init__(self, client, options):
        self.client, self.commits = client, options['commits']
        self.pause = options.get('pause', 0)
        self.pending = {}  # what was handed out and is not known to be committed

    def go_on(self):
        """Poll once, and do with what comes what has to be done."""
        records = self.client.poll()
        if not records:
            return
        offsets = {}
        for partition, offset, _, _ in records:
            offsets[partition] = offset + 1
        if self.commits == 'early':
            self.client.commit(offsets)
            say('committed', offsets)
            time.sleep(EARLY_SECONDS)
        tell(records)
        time.sleep(self.pause)
        if self.commits in ('sync', 'async'):
            self.pending.update(offsets)
        if self.commits == 'sync':
            self.client.commit(offsets)
            self.note(offsets)
        elif self.commits == 'async':
            self.client.commit_async(offsets, lambda: self.note(offsets))
        elif self.commits == 'auto':
            self.client.handed_out(offsets)

    def note(self, offsets):
        """Take note of a commit."""
        say('committed', offsets)
        for partition, offset in offsets.items():
            if self.pending.get(partition) == offset:
                del self.pending[partition]

    def close(self):
        """Leave; before it commit what is not committed because of a rebalance, or on its way."""
        deadline = time.monotonic() + END_SECONDS
        while time.monotonic() < deadline:
            owned = self.client.owned()
            left = {p: offset for p, offset in self.pending.items() if p in owned}
            if not left:
                break
            try:
                self.client.commit(left)
                self.note(left)
            except Exception as error:  # a rebalance is over some polls later
                say('error', type(error).__name__, str(error)[:300])
                try:
                    records = self.client.poll()
                except self.client.calls.interrupted:
                    continue
                tell(records)
                for partition, offset, _, _ in records:
                    self.pending[partition] = offset + 1
        self.client.close()


def tell(records):
    """Say which records were handed out, by partition, in their order."""
    by_partition = {}
    for partition, offset, _, value in records:
        offsets, numbers = by_partition.setdefault(partition, ([], []))
        offsets.append(offset)
        numbers.append(number_of(value))
    for partition, (offsets, numbers) in by_partition.items():
        say('records', partition, offsets, numbers)


def producer_of(options):
    """Return a producer of transactions, of the client that reads."""
    from kafka import KafkaProducer

    return KafkaProducer(
        bootstrap_servers=options['bootstrap'],
        transactional_id=options['transactional_id'],
        transaction_timeout_ms=20000,
        delivery_timeout_ms=12000,
        request_timeout_ms=5000,
        max_block_ms=120000,
    )


class Copier:
    """Copies what it reads to another topic, together with the offsets: consume and produce."""

    def __init__(self, client, options):
        self.client, self.options = client, options
        self.producer = None
        # What it still has to do, before it reads on, for a transaction that failed.
        self.has_to_renew, self.has_to_go_back = True, False

    def renew(self):
        """Begin with a new producer, which ends what the last one left open."""
        if self.producer is not None:
            self.client.calls.insist(self.producer.close, 0)
        self.producer = producer_of(self.options)
        self.client.calls.insist(self.producer.init_transactions)
        self.has_to_renew = False

    def go_on(self):
        """Copy what a poll brings, in one transaction; begin again with it if that fails."""
        from kafka.errors import KafkaError

        if self.has_to_renew:
            self.renew()
        if self.has_to_go_back:
            self.go_back()
        records = self.client.poll()
        if not records:
            return
        offsets = {}
        for partition, offset, _, _ in records:
            offsets[partition] = offset + 1
        call, interrupted = self.client.calls.call, self.client.calls.interrupted
        try:
            call(self.producer.begin_transaction)
            for _, _, key, value in records:
                call(self.producer.send, self.options['output'], value, key)
            consumer = self.client.consumer
            call(
                self.producer.send_offsets_to_transaction,
                self.client._places(offsets),
                consumer.group_metadata(),
            )
            call(self.producer.commit_transaction)
        except (KafkaError, *interrupted) as error:
            say('error', type(error).__name__, str(error))
            self.has_to_go_back = True
            try:
                call(self.producer.abort_transaction)
            except (KafkaError, *interrupted) as another:
                say('error', 'abort: %s' % type(another).__name__, str(another))
                self.has_to_renew = True
            return
        tell(records)

    def go_back(self):
        """Go back to what is committed."""
        consumer = self.client.consumer
        for each in consumer.assignment():
            found = consumer.committed(each)
            if each in consumer.assignment():
                if found is None:
                    consumer.seek_to_beginning(each)
                else:
                    consumer.seek(each, found)
        self.has_to_go_back = False

    def close(self):
        """Leave."""
        if self.producer is not None:
            self.producer.close(timeout=30)
        self.client.close()


class HelpedCopier:
    """The same with kafka.exactly_once, which has the loop."""

    def __init__(self, client, options):
        self.client, self.options = client, options
        self.producer = self.once = None
        self.last = []

    def go_on(self):
        """Copy what a poll brings; begin with new objects where the old ones are finished."""
        from kafka.exactly_once import ExactlyOnce

        if self.once is None:
            self.producer = producer_of(self.options)
            self.once = ExactlyOnce(
                self.client.consumer, self.producer, poll_timeout_ms=POLL_SECONDS * 1000
            )
        self.last = []
        try:
            if self.once.step(self.transform):
                tell(self.last)
        except Exception:
            if 'finished' in repr(self.once):  # fenced: the next one begins as a new program would
                self.producer.close(timeout=0)
                self.once = None
            raise

    def transform(self, records):
        """Return what goes out for records."""
        self.last = [(each.partition, each.offset, each.key, each.value) for each in records]
        return [(self.options['output'], each.value, each.key) for each in records]

    def close(self):
        """Leave."""
        if self.once is not None:
            self.once.close()
            self.producer.close(timeout=30)
        self.client.close()


def be_member(options, ends):
    """Be a member until an event is set."""
    from_here = {'ours': KafkaPythonClient, 'kafka-python': KafkaPythonClient}
    client = from_here.get(options['client'], ConfluentClient)(options)
    kind = Member
    if options.get('output'):
        kind = HelpedCopier if options.get('is_helped') else Copier
    member = kind(client, options)
    say('started', options['client'])
    while not ends.is_set():
        try:
            member.go_on()
        except Exception as error:  # told; a member goes on, as programs do
            say('error', type(error).__name__, str(error)[:300])
            time.sleep(0.1)
    member.close()
    say('closed')


def main(options):
    """Be a member until standard input ends, in the thread that the options name."""
    ends = threading.Event()

    def wait():
        sys.stdin.read()
        ends.set()

    threading.Thread(target=wait, daemon=True).start()
    if options.get('raises') == 'thread':
        worker = threading.Thread(target=be_member, args=(options, ends))
        worker.start()
        worker.join()
    else:
        be_member(options, ends)


if __name__ == '__main__':
    OPTIONS = json.loads(sys.argv[1])
    if OPTIONS['client'] == 'ours':
        sys.path.insert(0, OPTIONS['root'])
    main(OPTIONS)
