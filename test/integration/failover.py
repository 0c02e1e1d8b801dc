"""Send many messages while leaders die, then let another client tell what became of them.

    python -m test.integration.failover --release 4.4.0 --messages 200000 --kills 5 --mode sync

Owns the figure "no acknowledged message is lost, the order of each partition is kept": a program as
an owner of SimpleProducer writes it, leaders killed with SIGKILL at random moments (``--seed``), a
record of every produce request and its answer, and the judgement. The logs are read by
confluent-kafka. A log has to consist of whole requests in the order they were sent: those that were
acknowledged at the offsets their answers gave, and of the others only some whose fate the client
could not know. They are the duplicates, each explained by what the client saw. test_failover.py
runs this with fewer messages. Does not own: starting brokers (servers/).
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import threading
import time
from collections import Counter
from itertools import groupby
from typing import NamedTuple, Optional

from kafka import KafkaClient, SimpleProducer
from kafka.common import (
    ConnectionError,
    FailedPayloadsError,
    KafkaUnavailableError,
    LeaderNotAvailableError,
    NotLeaderForPartitionError,
    ProduceRequest,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
)
from kafka.errors import NotEnoughReplicasAfterAppendError, NotEnoughReplicasError
from servers.cluster import Cluster
from servers.releases import chosen

# What an owner's program meets while a leader is away, and answers by trying again.
GONE = (
    FailedPayloadsError,
    ConnectionError,
    KafkaUnavailableError,
    LeaderNotAvailableError,
    NotLeaderForPartitionError,
    UnknownTopicOrPartitionError,
    RequestTimedOutError,
    NotEnoughReplicasError,
    NotEnoughReplicasAfterAppendError,
)
# So that an acknowledged message is on two brokers at least.
CONFIG = {'min.insync.replicas': '2', 'unclean.leader.election.enable': 'false'}
PARTITIONS = 2
PER_CALL = 200  # messages of one call of the synchronous program
PER_SECOND = 4000  # so that brokers come back between two kills
PATIENCE_SECONDS = 120  # for one call of the synchronous program, with all its retries
STOP_SECONDS = 600
FILLING = b'.' * 90

# How an attempt ended, other than by the code of an error.
ACKNOWLEDGED, NOT_SENT, NO_ANSWER = 'acknowledged', 'not sent', 'no answer'
# After these the messages may be in the log, though nobody was told: what may stand there twice.
TIMED_OUT, TOO_FEW_COPIES, MOVED = 'error 7', 'error 20', 'error 6'
UNCERTAIN = (TIMED_OUT, TOO_FEW_COPIES, MOVED, NO_ANSWER)


# ---------------------------------------------------------------- the record


class Attempt(NamedTuple):
    """One request for one partition, sent once; offset: where the answer says it begins."""

    partition: int
    numbers: tuple
    outcome: str
    offset: Optional[int]


class RecordingClient(KafkaClient):
    """A client that notes every produce request and its end; copies write into the same list."""

    def __init__(self, *args, **kwargs):
        self.attempts = []
        super().__init__(*args, **kwargs)

    def copy(self):
        """Return a copy as KafkaClient's that goes on in the same list."""
        copied = super().copy()
        copied.attempts = self.attempts
        return copied

    def _send_broker_aware_request(self, payloads, *functions):
        try:
            answers = super()._send_broker_aware_request(payloads, *functions)
        except Exception:
            self._note(payloads, [None] * len(payloads))
            raise
        self._note(payloads, answers)
        return answers

    def _note(self, payloads, answers):
        for payload, answer in zip(payloads, answers):
            if isinstance(payload, ProduceRequest):
                numbers = tuple(number_of(message.value) for message in payload.messages)
                offset = getattr(answer, 'offset', None)
                self.attempts.append(Attempt(payload.partition, numbers, outcome(answer), offset))


def outcome(answer):
    """Name the end of an attempt; None stands for a leader that could not be found."""
    if answer is None:
        return NOT_SENT
    if isinstance(answer, FailedPayloadsError):
        cause = answer.__cause__
        refused = isinstance(cause, KafkaUnavailableError) or 'never there' in str(cause)
        return NOT_SENT if refused else NO_ANSWER
    return 'error %d' % answer.error if answer.error else ACKNOWLEDGED


def value_of(number):
    """Return the message that carries a number."""
    return b'%09d%s' % (number, FILLING)


def number_of(value):
    """Return the number that a message carries."""
    return int(value[:9])


# ---------------------------------------------------------------- the programs


class Program:
    """What both programs share: messages with rising numbers, and how far they have got.

    ``reached`` is how many messages were acknowledged; goes_on() says whether more are wanted: all
    of them, and then a few more until the last leader was killed.
    """

    def __init__(self, client, topic, messages, killer):
        self.client, self.topic, self.messages, self.killer = client, topic, messages, killer
        self.sent = 0
        self.errors = Counter()

    def goes_on(self):
        if self.sent < self.messages:
            return True
        while not self.killer.has_killed_all.is_set():
            if self.sent - self.reached < 1000:
                return True
            time.sleep(0.05)
        return False

    def next_values(self, count):
        first, self.sent = self.sent, self.sent + count
        return [value_of(number) for number in range(first, self.sent)]


class SynchronousProgram(Program):
    """Sends 200 messages a call, and again what failed."""

    reached = 0

    def run(self):
        producer = SimpleProducer(self.client, req_acks=-1)
        while self.goes_on():
            started = time.monotonic()
            values = self.next_values(PER_CALL)
            self.send(producer, values)
            self.reached += len(values)
            time.sleep(max(0, started + PER_CALL / PER_SECOND - time.monotonic()))
        return 0

    def send(self, producer, values):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                producer.send_messages(self.topic, *values)
                return
            except GONE as error:
                self.errors[type(error).__name__] += 1
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)


class AsynchronousProgram(Program):
    """Queues one message a call, and stops when all are queued."""

    producer = None

    @property
    def reached(self):
        return self.producer.tally.delivered if self.producer else 0

    def run(self):
        self.producer = producer = SimpleProducer(
            self.client, req_acks=-1, async_send=True, async_stop_timeout=STOP_SECONDS
        )
        while self.goes_on():
            started = time.monotonic()
            for value in self.next_values(20):
                producer.send_messages(self.topic, value)
            time.sleep(max(0, started + 20 / PER_SECOND - time.monotonic()))
        producer.stop()
        return producer.tally.lost


PROGRAMS = {'sync': SynchronousProgram, 'async': AsynchronousProgram}


# ---------------------------------------------------------------- the crashes


class Killer(threading.Thread):
    """Kills leaders at random moments, each time when the one before it is back.

    Arguments: reached: tells how many messages were acknowledged; the moments are drawn from the
    messages, one in each of as many parts as there are kills, and up to 0.2 s later.
    """

    def __init__(self, cluster, topic, kills, messages, chance):
        super().__init__(name='killer', daemon=True)
        self.cluster, self.topic, self.chance = cluster, topic, chance
        part = 0.95 * messages / kills if kills else 0
        self.moments = [int((n + chance.random()) * part) for n in range(kills)]
        self.program = None
        self.kills = []  # (messages acknowledged, node)
        self.has_killed_all = threading.Event()
        self.gives_up = threading.Event()
        self.error = None
        if not kills:
            self.has_killed_all.set()

    def run(self):
        try:
            for moment in self.moments:
                while self.program.reached < moment and not self.gives_up.wait(0.01):
                    pass
                self.kill_a_leader()
        except Exception as error:  # told by the main thread
            self.error = error
        finally:
            self.has_killed_all.set()

    def kill_a_leader(self):
        time.sleep(self.chance.random() * 0.2)
        node = self.cluster.wait_for_leader(self.topic, self.chance.randrange(PARTITIONS))
        self.cluster.kill(node)
        self.kills.append((self.program.reached, node))
        if len(self.kills) == len(self.moments):
            self.has_killed_all.set()
        time.sleep(self.chance.random() * 4)
        self.cluster.restart(node)


# ---------------------------------------------------------------- the judgement


def read_log(cluster, topic, partition, seconds=120):
    """Return the numbers of a partition by offset, as confluent-kafka reads them."""
    from confluent_kafka import Consumer, TopicPartition  # late: needed by the judge alone

    consumer = Consumer(
        {
            'bootstrap.servers': cluster.bootstrap,
            'group.id': 'judge',
            'enable.auto.commit': False,
            'log_level': 0,
        }
    )
    place = TopicPartition(topic, partition, 0)
    first, end = consumer.get_watermark_offsets(place, timeout=30)
    assert first == 0
    consumer.assign([place])
    numbers = []
    deadline = time.monotonic() + seconds
    while len(numbers) < end and time.monotonic() < deadline:
        for message in consumer.consume(1000, 0.5):
            if message.error() is None:
                assert message.offset() == len(numbers), 'offsets of a log without gaps'
                numbers.append(number_of(message.value()))
    consumer.close()
    assert len(numbers) == end, 'read %d of %d' % (len(numbers), end)
    return numbers


class Verdict(NamedTuple):
    """What a log holds beyond what was acknowledged, and what it must not hold or lack.

    unacknowledged: {outcome: [requests, messages]} written though the client was not told so.
    """

    unacknowledged: dict
    complaints: list


def judge(log, attempts):
    """Compare a partition's log (numbers by offset) with the requests for it, in their order."""
    verdict = Verdict({}, [])
    at = 0
    for numbers, group in groupby(attempts, key=lambda attempt: attempt.numbers):
        tried, size = list(group), len(numbers)
        copies = 0
        while tuple(log[at : at + size]) == numbers:
            copies += 1
            at += size
        ends = Counter(attempt.outcome for attempt in tried)
        extra = copies - ends[ACKNOWLEDGED]
        for attempt in tried:
            where = attempt.offset
            if attempt.outcome == ACKNOWLEDGED and tuple(log[where : where + size]) != numbers:
                verdict.complaints.append('%d … acknowledged, not at %d' % (numbers[0], where))
        for kind in UNCERTAIN:
            written = max(0, min(extra, ends[kind]))
            if written:
                extra -= written
                requests, messages = verdict.unacknowledged.get(kind, (0, 0))
                verdict.unacknowledged[kind] = requests + written, messages + written * size
        if extra:
            verdict.complaints.append(
                '%d … is there %d times after %r' % (numbers[0], copies, dict(ends))
            )
    if at != len(log):
        verdict.complaints.append('from offset %d on the log holds no whole request' % at)
    firsts = list(dict.fromkeys(log))
    if firsts != sorted(firsts):
        verdict.complaints.append('the order is not kept')
    return verdict


class Report(NamedTuple):
    """The figure. lost: acknowledged messages that are in no log; complaints: whatever is wrong."""

    title: str
    seconds: float
    sent: int
    given_up: int
    lost: int
    stored: int
    duplicates: int
    unacknowledged: dict
    attempts: Counter
    errors: Counter
    kills: list
    complaints: list

    def __str__(self):
        causes = '; '.join(
            '%s: %d messages in %d requests' % (kind, messages, requests)
            for kind, (requests, messages) in sorted(self.unacknowledged.items())
        )
        return '\n  '.join(
            [
                '%s, %.0f s' % (self.title, self.seconds),
                'sent %d, given up %d, acknowledged and lost %d'
                % (self.sent, self.given_up, self.lost),
                'in the logs %d, of which %d duplicates' % (self.stored, self.duplicates),
                'written without the client knowing: %s' % (causes or 'nothing'),
                'attempts %s' % dict(self.attempts),
                'errors met by the program: %s' % (dict(self.errors) or 'none'),
                'leaders killed at message (node): %s'
                % ', '.join('%d (%d)' % kill for kill in self.kills),
                'complaints: %s' % (self.complaints[:5] or 'none'),
            ]
        )


def run(cluster, topic, mode, messages, kills, seed):
    """Let a program send to a new topic of three brokers while leaders die; return the Report."""
    started = time.monotonic()
    cluster.create_topic(topic, PARTITIONS, config=CONFIG)
    killer = Killer(cluster, topic, kills, messages, random.Random(seed))
    client = RecordingClient(cluster.bootstrap)
    program = killer.program = PROGRAMS[mode](client, topic, messages, killer)
    killer.start()
    try:
        given_up = program.run()
    finally:
        killer.gives_up.set()
        killer.join()
        client.close()
    if killer.error is not None:
        raise killer.error
    seconds = time.monotonic() - started
    cluster.restart_killed()
    logs = []
    for partition in range(PARTITIONS):
        cluster.wait_for_leader(topic, partition)
        logs.append(read_log(cluster, topic, partition))
    title = '%s %s seed %d: %d messages, %d kills'
    return report(
        title % (cluster.release.name, mode, seed, messages, len(killer.kills)),
        seconds,
        (program, client.attempts, given_up, killer.kills),
        logs,
    )


def report(title, seconds, told, logs):
    """Put the Report together from what the program and its client told, and from the logs."""
    program, attempts, given_up, kills = told
    complaints, unacknowledged = [], {}
    for partition, log in enumerate(logs):
        verdict = judge(log, [a for a in attempts if a.partition == partition])
        complaints += ['partition %d: %s' % (partition, text) for text in verdict.complaints]
        for kind, (requests, messages) in verdict.unacknowledged.items():
            before = unacknowledged.get(kind, (0, 0))
            unacknowledged[kind] = before[0] + requests, before[1] + messages
    stored = Counter(number for log in logs for number in log)
    acknowledged = {n for a in attempts if a.outcome == ACKNOWLEDGED for n in a.numbers}
    if len(acknowledged) != program.reached or program.reached + given_up != program.sent:
        complaints.append(
            '%d sent, %d acknowledged, %d counted, %d given up'
            % (program.sent, len(acknowledged), program.reached, given_up)
        )
    return Report(
        title,
        seconds,
        program.sent,
        given_up,
        len(acknowledged - set(stored)),
        sum(stored.values()),
        sum(stored.values()) - len(stored),
        unacknowledged,
        Counter(attempt.outcome for attempt in attempts),
        program.errors,
        kills,
        complaints,
    )


def main(arguments=None):
    """Run the figure once; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--release', default='4.4.0')
    parser.add_argument('--messages', type=int, default=200000)
    parser.add_argument('--kills', type=int, default=5)
    parser.add_argument('--mode', choices=sorted(PROGRAMS), action='append')
    parser.add_argument('--seed', type=int, action='append')
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.CRITICAL)
    bad = 0
    (release,) = chosen(options.release)
    with Cluster(release, 3) as cluster:
        for seed in options.seed or [random.randrange(10**6)]:
            for mode in options.mode or ['sync', 'async']:
                found = run(
                    cluster,
                    'failover-%s-%d' % (mode, seed),
                    mode,
                    options.messages,
                    options.kills,
                    seed,
                )
                sys.stdout.write('%s\n' % (found,))
                sys.stdout.flush()
                bad += bool(found.lost or found.given_up or found.complaints)
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
