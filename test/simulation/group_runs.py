"""One run of the simulation of a group: what a seed makes of it, from the release to the checks.

Owns the programs: who joins, polls, commits, seeks, stalls, dies and comes back when, and what is
written meanwhile. ``run(seed)`` repeats a run event by event, in any process: nothing may ask the
machine's clock, chance that no seed made, or the order of a set.
"""

from __future__ import annotations

import random

from kafka import SubscriptionPattern
from kafka.errors import NoBrokersAvailable
from kafka.structs import TopicPartition
from kafka.testing import MemoryCluster
from test.simulation.checks import Wrong, hearing, repeatable
from test.simulation.ledger import Ledger
from test.simulation.reader import Reader, SimConsumer
from test.simulation.trouble import Trouble
from test.simulation.truncation import TRUNCATIONS_ARE_TOLD_SINCE, lose_the_end
from test.simulation.world import World, seeded

TOPIC = 't'
#: One that is deleted and made anew.
OTHER, OTHERS = 'x', 2
#: Those that come while readers follow a pattern, of two partitions each, and one that is none.
MORE, UNWANTED = ['t1', 't2'], 'not'
#: One without records, to which readers subscribe for a while in place of the others.
ELSEWHERE = 'elsewhere'
GROUP = 'readers'
RELEASES = [
    '0.9',
    '0.10.0',
    '0.10.2',
    '0.11',
    '1.1',
    '2.2',
    '2.4',
    '2.8',
    '3.5',
    '3.9',
    '4.0',
    '4.4',
    '4.4',
]
#: Since when brokers know the time between polls apart from the session, static members, KIP-848.
POLL_INTERVAL_SINCE, STATIC_SINCE, NEXT_SINCE = (0, 10, 1), (2, 3), (4, 0)
TOLD_SINCE = (0, 10)  # brokers tell their APIs
ASSIGNORS = ['range', 'roundrobin', 'sticky', 'cooperative-sticky']
MOST_READERS = 4
#: So long trouble lasts, and so long everything may take to come to its end afterwards.
TROUBLE_SECONDS = 20.0
PATIENCE_SECONDS = 120.0
#: After so long there is more to read for who has read all and has nothing to mark.
MARK_SECONDS = 20.0


class GroupRun(World):
    """One run.

    Attributes: readers: the programs that live; history: a digest of all that happened, once it is
    over; events: what happened, as text, where verbose.
    """

    def __init__(self, seed, verbose=False):
        chance = random.Random('group %d' % seed)
        super().__init__(seed, chance, verbose)
        self.release = chance.choice(RELEASES)
        self.version = tuple(int(part) for part in self.release.split('.'))
        self.rate = chance.choice([0.0, 0.2, 0.5, 1.0])
        self.is_next = self.version >= NEXT_SINCE and chance.random() < 0.6
        self.assignor = chance.choice(ASSIGNORS)
        self.commits_by = chance.choice(['itself', 'marks', 'sync', 'async'])
        self.is_committed_only = self.version >= (0, 11) and chance.random() < 0.5
        self.request_timeout = 7.0 if self.version < POLL_INTERVAL_SINCE else 3.0
        self.commit_ms = 3000
        self.brokers = chance.choice([1, 1, 2, 3])
        self.partitions = chance.choice([1, 2, 3, 5])
        self.batches = self.brokers if self.version >= (0, 10, 1) else 6
        self.topics = [TOPIC, OTHER] if chance.random() < 0.4 else [TOPIC]
        self.loses_ends = (
            self.version >= TRUNCATIONS_ARE_TOLD_SINCE
            and not self.is_committed_only
            and chance.random() < 0.5
        )
        self.has_patterns = chance.random() < 0.25
        # Of their own chance: the histories of runs without these are what they were before.
        self.more_chance = random.Random('glances of group %d' % seed)
        self.has_glances = self.more_chance.random() < 0.25 and not self.loses_ends
        self.changes_subscriptions = self.more_chance.random() < 0.25 and not self.has_patterns
        self.commits_what_goes = self.changes_subscriptions and self.commits_by == 'sync'
        self.names = [TOPIC]  # of those that stay
        # Of its own, so that seeds without interruptions are what they were.
        self.interruptions = random.Random('interruptions %d' % seed)
        self.is_interrupted = seed % 5 == 3
        self.readers = []
        self.begun = 0
        self.taken = {}  # instance ids that were taken over, with who had them

    def __repr__(self):
        how = 'consumer protocol' if self.is_next else self.assignor
        words = 'seed', self.seed, self.release, how, 'commits by', self.commits_by, self.rate
        return '<GroupRun %s>' % ' '.join(map(str, words))

    def go(self):
        """Do it all. Raises Wrong."""
        with hearing(self.seed), seeded(self.seed), MemoryCluster(
            brokers=self.brokers,
            version=self.release,
            seed=self.seed,
            topics=self.all_topics(),
            auto_create_topics=False,
            group_consumer_session_timeout_ms=6000,
            group_consumer_heartbeat_interval_ms=2000,
        ) as self.cluster:
            try:
                self._go()
            finally:
                for reader in list(self.readers):
                    self.readers.remove(reader)
                    reader.die()

    def all_topics(self):
        """Return all topics, with their number of partitions."""
        more = {ELSEWHERE: 1} if self.changes_subscriptions else {}
        return {TOPIC: self.partitions, OTHER: OTHERS, UNWANTED: 1, **more}

    def _go(self):
        self.ledger = Ledger(self.cluster, GROUP, [ELSEWHERE])
        for index in range(self.partitions):
            self.ledger.add(TOPIC, index)
        for index in range(OTHERS if OTHER in self.topics else 0):
            self.ledger.add(OTHER, index, is_loose=True)
        for _ in range(self.chance.choice([0, 3, 10])):
            self.write()
        self.trouble = Trouble(self.cluster, self.chance, TOPIC, [GROUP], self.rate)
        self.trouble.begin_for_groups(TROUBLE_SECONDS)
        end = self.now() + TROUBLE_SECONDS
        if self.has_glances:
            self.glance()
        while self.now() < end:
            if self.more_chance.random() < 0.08:
                self.one_event_more()
            self.one_event()
            self.ledger.check()
        self.finish()
        self.digest.update(repr(self.cluster.trace).encode())
        self.history = self.digest.hexdigest()[:16]

    # ------------------------------------------------------------ what happens

    def one_event(self):
        """Let one thing happen."""
        chance = self.chance
        if not self.readers:
            self.join()
            return
        number = chance.random()
        for share, event in (
            (0.54, self.poll_one),
            (0.01, self.add_topic),
            (0.14, self.write),
            (0.05, self.write_in_transaction),
            (0.05, self.commit_one),
            (0.03, self.seek_one),
            (0.05, self.join),
            (0.02, self.close_one),
            (0.02, self.kill_one),
            (0.02, self.stall_one),
            (0.01, self.make_anew),
            (0.02, self.write_other),
            (0.02, self.add_partition),
            (0.02, self.delete_records),
        ):
            number -= share
            if number < 0:
                event()
                return

    def one_event_more(self):
        """Let something happen that is not in all runs."""
        if self.has_glances and self.more_chance.random() < 0.3:
            self.glance()
        elif self.changes_subscriptions and self.awake():
            self.change_subscription(self.more_chance.choice(self.awake()))

    def glance(self):
        """Let a program come that goes to the end of logs, and leave before it has read anything.

        It is none of the group that subscribes while others are, who would have to come to a
        rebalance for it.
        """
        options = {**self.options(), 'auto_offset_reset': 'latest'}
        options.pop('group_instance_id', None)
        try:
            consumer = SimConsumer.of(self.cluster, self.loops, **options)
        except NoBrokersAvailable:
            self.note('nobody answers who glances')
            return
        partitions = [TopicPartition(*key) for key in self.ledger.places]
        consumer.assign(partitions)
        self.rest(self.more_chance.choice([0.2, 1.0, 3.0]))
        self.note('a program glances at %d partitions', len(partitions))
        consumer.close(timeout_ms=5000)

    def change_subscription(self, reader):
        if reader.is_elsewhere:
            reader.come_back()
        else:
            topics = [ELSEWHERE, OTHER] if OTHER in self.topics else [ELSEWHERE]
            reader.subscribe_elsewhere(topics[: self.more_chance.choice([1, 2])])
            if self.more_chance.random() < 0.3:
                reader.come_back()  # before anybody has heard of it

    def is_calm(self, reader):
        """Tell whether a reader's own commit before it gives partitions back cannot have failed."""
        if not self.changes_subscriptions or self.rate or self.commits_by != 'itself':
            return False
        return not reader.has_stalled and not self.may_be_fenced(reader)

    def awake(self):
        return [each for each in self.readers if each.quiet_until <= self.now()]

    def poll_one(self):
        awake = self.awake()
        if not awake:
            self.rest(0.5)
            return
        reader = self.chance.choice(awake)
        found = reader.poll(self.chance.choice([0, 50, 200, 500]))
        if found and self.loses_ends and self.chance.random() < 0.4:
            self.lose_end(self.chance.choice(sorted(found)))
        if reader.is_fenced:
            self.readers.remove(reader)
            reader.close()
        elif self.commits_by in ('sync', 'async') and self.chance.random() < 0.3:
            self.commit(reader)

    def interrupts_at(self):
        """Return at which place a poll is interrupted, None for not at all."""
        if not self.is_interrupted or self.interruptions.random() > 0.15:
            return None
        return self.interruptions.randrange(60)

    def commit(self, reader):
        if self.commits_by == 'async':
            reader.commit_later()
        else:
            reader.commit()

    def commit_one(self):
        awake = self.awake()
        if awake:
            self.commit(self.chance.choice(awake))

    def seek_one(self):
        if self.loses_ends:
            return  # nobody can tell whether the log was cut below an offset that was made up
        for reader in self.awake():
            for partition in sorted(reader.consumer.assignment()):
                place = self.ledger.places.get(partition)
                if place is not None and reader in place.holds and not place.is_loose:
                    log = place.log
                    reader.seek(partition, self.chance.randint(log.start_offset, log.end_offset))
                    return

    def write(self, is_last=False):
        """Write some records to a partition."""
        topics = self.cluster.state.topics
        partition = self.chance.choice([p for name in self.names for p in topics[name].partitions])
        self.append(partition, self.values(self.chance.choice([1, 2, 5])))

    def write_in_transaction(self):
        """Write some records in a transaction, which is committed or aborted, now or later."""
        if not self.is_committed_only:
            return
        partition = self.chance.choice(self.cluster.state.topics[TOPIC].partitions)
        is_good = self.chance.random() < 0.4
        self.append_in_transaction(partition, is_good, self.chance.choice([0.0, 0.0, 1.0, 3.0]))

    def wrote(self, partition, first_offset, values):
        place = self.ledger.places[partition.topic, partition.index]
        for offset, value in enumerate(values, first_offset):
            place.wrote(offset, value)

    def options(self):
        """Return what a consumer is told."""
        chance = self.chance
        session = 6000
        options = {
            'group_id': GROUP,
            'group_protocol': 'consumer' if self.is_next else 'classic',
            'auto_offset_reset': 'earliest',
            'isolation_level': 'read_committed' if self.is_committed_only else 'read_uncommitted',
            'enable_auto_commit': self.commits_by in ('itself', 'marks'),
            'auto_commit_interval_ms': chance.choice([300, 1000, 5000]),
            'request_timeout_ms': int(self.request_timeout * 1000),
            'retry_backoff_ms': 100,
            'retry_backoff_max_ms': 1000,
            'reconnect_backoff_max_ms': 500,
            'fetch_max_wait_ms': chance.choice([500, 2000]),
            'metadata_max_age_ms': 3000,
            'max_poll_records': chance.choice([1, 3, 500]),
            'fetch_max_buffered_bytes': chance.choice([1000, 1 << 20]),
            'connections_max_idle_ms': 540000,
            'metrics_enabled': chance.random() < 0.2,
        }
        if self.version < TOLD_SINCE:  # asked in trouble, such a broker may seem to be an older one
            options['api_version'] = self.version
        if not self.is_next:
            options['session_timeout_ms'] = session
            options['heartbeat_interval_ms'] = chance.choice([500, 2000])
            options['partition_assignment_strategy'] = [self.assignor]
        if self.version >= POLL_INTERVAL_SINCE:
            options['max_poll_interval_ms'] = chance.choice([6000, 10000])
        if self.version >= STATIC_SINCE and chance.random() < 0.3:
            options['group_instance_id'] = 'static-%d' % chance.randrange(MOST_READERS)
        return options

    def wanted(self):
        """Return what a program subscribes to."""
        if not self.has_patterns:
            return {'topics': self.topics}
        text = '[tx]' if OTHER in self.topics else 't'
        if self.is_next and self.chance.random() < 0.5:
            return {'pattern': SubscriptionPattern(text + '.*')}
        return {'pattern': text}

    def may_be_fenced(self, reader):
        return any(
            each is not reader and each.instance == reader.instance
            for each in self.taken.get(reader.instance, ())
        )

    def join(self):
        """Let one program more read, or take the place of another one."""
        if len(self.readers) >= MOST_READERS:
            return
        try:
            reader = Reader(self, self.begun, self.wanted(), self.options())
        except NoBrokersAvailable:
            self.note('nobody answers')
            return
        self.note('%r begins %s', reader, reader.instance)
        self.begun += 1
        self.readers.append(reader)
        if reader.instance is not None:
            self.taken.setdefault(reader.instance, []).append(reader)

    def take_one(self):
        reader = self.chance.choice(self.readers)
        self.readers.remove(reader)
        reader.wake()
        return reader

    def close_one(self):
        self.take_one().close()

    def kill_one(self):
        self.take_one().die()

    def stall_one(self):
        reader = self.chance.choice(self.readers)
        if reader.quiet_until > self.now():
            return
        reader.quiet_until = self.now() + self.chance.choice([2.0, 8.0, 15.0])
        reader.has_stalled = True
        self.note('%r stalls until %.3f', reader, reader.quiet_until)
        if self.chance.random() < 0.5:
            loop = reader.consumer._engine.loop
            loop.is_frozen = True
            self.cluster.timers.at(reader.quiet_until, lambda: setattr(loop, 'is_frozen', False))

    def add_partition(self):
        topic = self.cluster.state.topics[TOPIC]
        if len(topic.partitions) < 6 and self.chance.random() < 0.5:
            state = self.cluster.state
            nodes = list(topic.partitions[0].replicas)
            state.add_partition(topic, nodes)
            self.ledger.add(TOPIC, len(topic.partitions) - 1)
            self.note('a partition more')

    def add_topic(self):
        """Create one more topic that readers look for."""
        name = next((each for each in MORE if each not in self.names), None)
        if name is None or not self.has_patterns or not self.cluster.state.alive:
            return
        self.cluster.state.create_topic(name, 2)
        self.names.append(name)
        for index in range(2):
            self.ledger.add(name, index)
        self.note('there is a topic %s', name)

    def write_other(self):
        """Write to the topic that is made anew, if it is there."""
        topic = self.cluster.state.topics.get(OTHER)
        if OTHER in self.topics and topic is not None:
            self.count += 1
            self.append(self.chance.choice(topic.partitions), [b'%06d' % self.count])

    def make_anew(self):
        """Delete a topic, and create it again."""
        if OTHER not in self.topics or OTHER not in self.cluster.state.topics:
            return
        self.note('%s is deleted', OTHER)
        self.cluster.state.drop_topic(OTHER)
        for index in range(OTHERS):
            self.cluster.waiting.touch(('partition', OTHER, index))
        pause = self.chance.choice([0.0, 0.0, 1.0, 4.0])
        if pause:
            self.cluster.timers.later(pause, self.create_other)
        else:
            self.create_other()

    def create_other(self):
        """Create the topic that was deleted, where that can be."""
        if not self.cluster.state.alive:
            self.cluster.timers.later(1.0, self.create_other)
            return
        self.note('%s is made anew', OTHER)
        self.cluster.state.create_topic(OTHER, OTHERS)
        for index in range(OTHERS):
            self.ledger.made_anew(OTHER, index)

    def delete_records(self):
        partition = self.chance.choice(self.cluster.state.topics[TOPIC].partitions)
        offset = self.chance.randint(partition.log.start_offset, partition.log.end_offset)
        partition.log.delete_before(offset)
        self.cluster.waiting.touch(('partition', TOPIC, partition.index))
        self.note('%d begins at %d', partition.index, offset)

    def lose_end(self, key):
        """Let a log lose its last records, in an election that is not clean."""
        place = self.ledger.places[key]
        if place.is_loose:
            return
        partition = self.cluster.state.topics[key[0]].partitions[key[1]]
        found = lose_the_end(self.cluster, partition, self.chance)
        if found is None:
            return
        self.note('%s-%d loses what was from %d on, epoch %d', *key, *found)
        place.cut(partition.log, *found)
        if self.chance.random() < 0.6:  # so that nobody notices by the end alone
            self.append(partition, self.values(self.chance.choice([1, 5, 20])))

    # ------------------------------------------------------------ the end

    def finish(self):
        """Let everything come to its end, and check it."""
        self.trouble.end()
        self.is_interrupted = False
        self.note('well again')
        if not self.readers:
            self.join()
        self.write()
        while OTHER not in self.cluster.state.topics:
            self.rest(1.0)
        self.ledger.forgive()
        for _ in range(3):
            self.write_other()
        end, more_at = self.now() + PATIENCE_SECONDS, self.now() + MARK_SECONDS
        help_at = self.now() + PATIENCE_SECONDS / 2
        while not self.ledger.is_over():
            if self.may_lack_a_round() and self.now() > help_at:
                help_at = end
                self.share_anew()
            if self.commits_by == 'marks' and self.now() > more_at:
                self.write_where_all_is_read()
                more_at += MARK_SECONDS
            if not self.readers:  # the last one was fenced
                self.join()
                self.rest(0.1)
            for reader in list(self.readers):
                reader.wake()
                reader.come_back()
                reader.poll(100)
                if reader.is_fenced:
                    self.readers.remove(reader)
                    reader.close()
                elif self.commits_by in ('sync', 'async') and self.chance.random() < 0.4:
                    self.commit(reader)
            self.ledger.check()
            if self.now() > end:
                raise Wrong('it does not come to its end: %s' % self.left())
        for reader in list(self.readers):
            self.readers.remove(reader)
            reader.close()
            self.ledger.check()

    def may_lack_a_round(self):
        """Tell whether partitions may be nobody's until the next rebalance, and nobody can know.

        Another process takes the place of the leader, a static member, and the group keeps its
        assignment (KIP-345). So it does not hear of a partition that was added before that; nor of
        one that the former leader withheld from others until it gave it up itself (KIP-429).
        """
        return not self.is_next and any(len(some) > 1 for some in self.taken.values())

    def share_anew(self):
        """Let the group rebalance, as whoever runs it would."""
        for reader in self.readers:
            self.note('%r asks for a rebalance', reader)
            reader.consumer.enforce_rebalance()

    def write_where_all_is_read(self):
        """Let who went to the end of a log have something to mark, or it commits nothing there."""
        for (topic, index), place in sorted(self.ledger.places.items()):
            if place.left() and not place.unread(place.log.end_offset):
                self.count += 1
                partition = self.cluster.state.topics[topic].partitions[index]
                self.append(partition, [b'%06d' % self.count])

    def left(self):
        """Return what is missing, for people."""
        words = []
        for key, place in sorted(self.ledger.places.items()):
            if place.left() or len(place.holds) != 1:
                words.append(
                    '%s-%d: left %s, unread %s, had by %s'
                    % (*key, place.left(), place.unread(place.log.end_offset), list(place.holds))
                )
        words += ['%r %r' % (each, each.consumer._engine.member) for each in self.readers]
        return '; '.join(words)


def run_group(seed, verbose=False):
    """Make one run. Raises Wrong, or whatever else goes wrong, with the way to repeat it."""
    made = GroupRun(seed, verbose)
    with repeatable(made, '--groups --seed %d' % seed):
        made.go()
    return made


__all__ = ['GroupRun', 'run_group']
