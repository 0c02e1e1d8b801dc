"""Let a group read while brokers and members are killed, and judge what each member was handed.

    python -m test.integration.chaos_groups --rounds 10 --records 100000 --protocol classic
    python -m test.integration.chaos_groups --rounds 10 --protocol consumer --transactions
    python -m test.integration.chaos_groups --rounds 1 --commits early
    python -m test.integration.chaos_groups --rounds 10 --raise

Owns the figure "0 lost, order per key, every record handed out, again only for a reason, no commit
ahead": an idempotent producer with keys (chaos.py), a group of four members that are processes of
their own (group_member.py), killed with SIGKILL and followed by others, brokers killed meanwhile:
leaders, controllers, and the coordinator of the group. With ``--transactions`` the members copy to
another topic in transactions, and that copy has to hold every record once. ``--commits early`` has
members that commit what they have not seen: a run that must be found bad. With ``--raise``
exceptions are raised into each member's calls about once a second, in its main thread or another
one by turns (interrupting.py). group_judge.py says what must hold. A line of figures is printed for
each round; the exit code is the number of bad ones, up to 1. Does not own: starting brokers
(servers/).
"""

from __future__ import annotations

import argparse
import functools
import json
import logging
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from typing import NamedTuple, Optional

from servers.releases import chosen
from test.integration.chaos import (
    PARTITIONS,
    SLOW,
    ChaosKiller,
    IdempotentProgram,
    Mistakes,
    PatientCluster,
    wait_for_markers,
)
from test.integration.chaos_judge import KEYS, Judgement, disorder, judge, read_log
from test.integration.failover import CONFIG
from test.integration.group_judge import OPEN, stints_of
from test.integration.group_judge import judge as judge_group
from test.integration.group_processes import Group
from test.integration.group_wire import group_coordinator_of, members_of
from test.integration.judges import BrokerOffsets

MEMBERS = 4
#: Who commits how, by place.
COMMITS = ('sync', 'async', 'auto', 'sync')
#: How long nothing may happen when all was sent, before the members are taken for finished.
STUCK_SECONDS = 60
#: And where members commit too early, which loses records, once they have committed all there is.
QUIET_SECONDS = 10


class Sending(IdempotentProgram):
    """Sends; the brokers that are killed may be the group's coordinator too."""

    kinds = ('leader', 'coordinator', 'controller')


class BrokerKiller(ChaosKiller):
    """Kills brokers by turns; group: whose coordinator is meant."""

    group = ''

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.times = []  # (monotonic seconds, node, what happened to it)

    def find(self, kind):
        """Return the broker that has an office now."""
        node = super().find(kind)
        self.times.append((time.monotonic(), node, 'killed as ' + kind))
        return node

    def coordinator(self, cluster):
        """Return the coordinator of the group."""
        return group_coordinator_of(cluster, self.group)


class MemberKiller(threading.Thread):
    """Kills members at random moments, drawn from the numbers of records handed out."""

    def __init__(self, members, kills, records, chance):
        super().__init__(name='member killer', daemon=True)
        self.members, self.chance = members, chance
        part = 0.9 * records / kills if kills else 0
        self.moments = [int((n + chance.random()) * part) for n in range(kills)]
        self.killed = 0
        self.gives_up = threading.Event()
        self.error: Optional[BaseException] = None

    def run(self):
        """Kill, and start another in its place a little later."""
        try:
            for moment in self.moments:
                while self.handed_out() < moment and not self.gives_up.wait(0.02):
                    pass
                if self.gives_up.is_set():
                    return
                place = self.chance.randrange(len(self.members.places))
                self.members.places[place].kill()
                self.killed += 1
                self.gives_up.wait(self.chance.random() * 3)
                self.members.replace(place)
        except Exception as error:  # told by the main thread
            self.error = error

    def end(self):
        """Let it kill the rest, as long as members get on; then end it."""
        last, changed_at = -1, time.monotonic()
        while self.is_alive() and time.monotonic() < changed_at + STUCK_SECONDS:
            self.join(0.5)
            if self.handed_out() != last:
                last, changed_at = self.handed_out(), time.monotonic()
        self.gives_up.set()
        self.join()

    def handed_out(self):
        """Return how many records were handed out, some more than once."""
        lives = list(self.members.lives)
        return sum(
            len(each.words[1])
            for life in lives
            for each in list(life.events)
            if each.what == 'records'
        )


class Report(NamedTuple):
    """The figures of one round."""

    title: str
    seconds: float
    sent: int
    brokers: Counter
    members: int
    errors: Counter
    mistakes: list
    producer: Judgement
    verdict: object

    @property
    def is_good(self):
        """Whether everything is as it should be."""
        return self.producer.is_good and self.verdict.is_good and not self.mistakes

    def __str__(self):
        return '%s: %s, %.0f s; killed %s, %d members; met %s; group: %s; producer: %s%s' % (
            'good' if self.is_good else 'BAD',
            self.title,
            self.seconds,
            ', '.join('%d %s' % (n, kind) for kind, n in sorted(self.brokers.items())) or 'nobody',
            self.members,
            dict(self.errors) or 'no error',
            self.verdict,
            self.producer,
            '; MISTAKES: %s' % self.mistakes[:3] if self.mistakes else '',
        )


class Copied(NamedTuple):
    """What became of a copy in transactions; all but the first has to be 0."""

    copied: int
    missed: int
    twice: int
    disordered: int
    foreign: int
    behind: int

    @property
    def is_good(self):
        """Whether every record is there once, in order, and its offset committed."""
        return not any(self[1:])

    def __str__(self):
        return ', '.join('%s %d' % pair for pair in zip(self._fields, self))


def judge_copy(logs, copies, behind):
    """Compare the logs that were read with those that were written, all by partition."""
    wanted = {found.number for log in logs.values() for found in log}
    times = Counter(found.number for log in copies.values() for found in log)
    return Copied(
        copied=sum(times.values()),
        missed=len(wanted - set(times)),
        twice=sum(count - 1 for count in times.values()),
        disordered=disorder(copies),
        foreign=len(set(times) - wanted),
        behind=behind,
    )


class Round:
    """One round: a topic, a producer, a group, those who kill."""

    def __init__(self, cluster, topic, options):
        self.cluster, self.topic, self.options = cluster, topic, options
        self.group, self.output = topic + '-group', topic + '-copy'
        self.chance = random.Random(options.seed)

    def run(self):
        """Run it; return the Report."""
        began = time.monotonic()
        for name in (self.topic, self.output)[: 1 + self.options.transactions]:
            self.cluster.create_topic(name, PARTITIONS, config=CONFIG)
        mistakes = Mistakes()
        logging.getLogger('kafka').addHandler(mistakes)
        try:
            with Group(**self.members_options()) as members:
                for place in range(MEMBERS):
                    members.add(**self.place_options(place))
                program, told, brokers, killer = self.send(members)
                logs = self.logs_of(self.topic)
                self.wait_for_end(members, logs)
                members.stop()
        finally:
            logging.getLogger('kafka').removeHandler(mistakes)
        found = Report(
            self.title(),
            time.monotonic() - began,
            program.sent,
            Counter(kind for _, _, kind in brokers.kills),
            killer.killed,
            program.errors + errors_of(members),
            mistakes.texts + swallowed_in(members),
            judge(logs, told),
            self.judge(logs, members),
        )
        self.write_down = functools.partial(write_down, members=members, brokers=brokers)
        if self.options.told:
            self.write_down(self.options.told)
        return found

    def title(self):
        """Return what the round is called."""
        options = self.options
        what = options.protocol if options.protocol == 'consumer' else options.assignor
        return '%s %s %s%s seed %d' % (
            self.cluster.release.name,
            options.client,
            what,
            ' copy' if options.transactions else ' commits ' + options.commits,
            options.seed,
        )

    def members_options(self):
        """Return the options of all members."""
        options = self.options
        return {
            'bootstrap': self.cluster.bootstrap,
            'topic': self.topic,
            'group': self.group,
            'client': options.client,
            'protocol': options.protocol,
            'assignor': options.assignor,
            'session_ms': 8000,
        }

    def place_options(self, place):
        """Return those of one place."""
        raises = {}
        if self.options.raises:
            raises = {'raises': ('signal', 'thread')[place % 2], 'every': self.options.every}
        return {**raises, **self.commit_options(place)}

    def commit_options(self, place):
        """Return those that say who commits."""
        commits = COMMITS[place] if self.options.commits == 'mixed' else self.options.commits
        if not self.options.transactions:
            return {'commits': commits}
        return {
            'commits': 'none',
            'output': self.output,
            'transactional_id': '%s-%d' % (self.group, place),
            'is_helped': self.options.is_helped,
        }

    def send(self, members):
        """Send everything while brokers and members die; return who did what."""
        options = self.options
        brokers = BrokerKiller(
            self.cluster, self.topic, options.kills, options.records, self.chance
        )
        brokers.group = self.group
        chance = random.Random(options.seed + 1)
        program = Sending(self.cluster, self.topic, options.records, brokers, chance)
        brokers.program = program
        killer = MemberKiller(
            members, options.member_kills, options.records, random.Random(options.seed + 2)
        )
        brokers.start()
        killer.start()
        try:
            told = program.run()
        finally:
            brokers.gives_up.set()
            brokers.join()
        self.cluster.restart_killed()
        killer.end()
        for error in (brokers.error, killer.error):
            if error is not None:
                raise error
        return program, told, brokers, killer

    def logs_of(self, topic):
        """Return the records of a topic, by partition."""
        logs = {}
        for partition in range(PARTITIONS):
            wait_for_markers(self.cluster, topic, partition)
            logs[partition] = read_log(self.cluster.bootstrap, topic, partition)
        return logs

    def wait_for_end(self, members, logs):
        """Wait until the members have read everything, or do not get on any more."""
        ends = {p: log[-1].offset + 1 if log else 0 for p, log in logs.items()}
        last, changed_at, patience = None, time.monotonic(), STUCK_SECONDS
        while time.monotonic() < changed_at + patience:
            now = self.state_of(members)
            if self.options.transactions:
                if now == ends:
                    return
            elif set(members.numbers_seen) >= {f.number for log in logs.values() for f in log}:
                if are_in_hands(ends, stints_of(members.lives), self.committed()):
                    if self.are_members(members):
                        return
            if now != last:
                last, changed_at = now, time.monotonic()
            elif self.options.commits == 'early' and self.committed() == ends:
                patience = QUIET_SECONDS
            time.sleep(0.5)

    def are_members(self, members):
        """Tell whether those that live, and nobody else, are who the group has.

        Whom the coordinator took for dead hears of it late: it cannot commit what it has in hands,
        and who comes next is handed that again. It is not stopped before it has been told.
        """
        told = members_of(self.cluster, self.group, self.options.protocol)
        return is_whole(*told, [each.name for each in members.places])

    def state_of(self, members):
        if self.options.transactions:
            return self.committed()
        return sum(len(each.events) for each in list(members.lives))

    def committed(self):
        """Return {partition: offset} that the group has committed."""
        stored = BrokerOffsets(self.cluster).stored(self.group, self.topic, range(PARTITIONS))
        return {partition: stored.get(partition, 0) for partition in range(PARTITIONS)}

    def judge(self, logs, members):
        """Return what is to be said of the group."""
        committed = self.committed()
        if self.options.transactions:
            behind = sum(f.offset >= committed[p] for p, log in logs.items() for f in log)
            return judge_copy(logs, self.logs_of(self.output), behind)
        numbers = {p: {f.offset: f.number for f in log} for p, log in logs.items()}
        return judge_group(numbers, stints_of(members.lives), committed, KEYS)


def are_in_hands(ends, told, committed):
    """Tell whether what is not committed was handed out to members that live: they will commit it.

    What others had been handed before they were killed is handed out again, a session later.
    """
    last = {
        (each.partition, each.handed[-1].offsets[-1] + 1)
        for each in told.stints
        if each.how == OPEN and each.handed
    }
    return all(committed[p] >= end or (p, end) in last for p, end in ends.items())


def is_whole(state, found, living):
    """Tell whether a group, as its coordinator describes it, is at rest and is those that live."""
    return state == 'Stable' and sorted(found) == sorted(living)


def write_down(path, members, brokers):
    """Append what was told to a file, a line of JSON for each life and one for the brokers."""
    with open(path, 'a', encoding='utf-8') as file:
        for life in members.lives:
            events = [[each.at, each.what, *each.words] for each in life.events]
            complaints = life.complaints.decode(errors='replace')
            told = {'name': life.name, 'killed_at': life.killed_at, 'options': life.options}
            file.write(json.dumps({**told, 'complaints': complaints, 'events': events}) + '\n')
        file.write(json.dumps({'brokers': brokers.times}) + '\n')


def errors_of(members):
    """Count the errors that members met."""
    found = Counter()
    for life in members.lives:
        found.update(each.split(':')[0] for each in life.errors)
    return found


def swallowed_in(members):
    """Return a text for each member whose client swallowed an exception."""
    return [
        '%s: %d of %d exceptions were swallowed' % (life.name, each.words[1], each.words[0])
        for life in members.lives
        for each in life.events
        if each.what == 'interrupted' and each.words[1]
    ]


def run(cluster, topic, **options):
    """Run one round with options as on the command line; return the Report."""
    words = parser().parse_args([])
    for name, value in options.items():
        assert hasattr(words, name), name
        setattr(words, name, value)
    return Round(cluster, topic, words).run()


def parser():
    """Return what understands the command line."""
    made = argparse.ArgumentParser(description=(__doc__ or '').splitlines()[0])
    made.add_argument('--release', default='4.4.0')
    made.add_argument('--rounds', type=int, default=1)
    made.add_argument('--records', type=int, default=100_000, help='in each round, at least')
    made.add_argument('--kills', type=int, default=3, help='brokers killed in each round')
    made.add_argument('--member-kills', type=int, default=6, help='members killed in each round')
    made.add_argument('--protocol', choices=['classic', 'consumer'], default='classic')
    made.add_argument('--assignor', default='cooperative-sticky', help='of a classic group')
    made.add_argument('--client', choices=['ours', 'confluent'], default='ours')
    made.add_argument(
        '--commits', choices=['mixed', 'sync', 'async', 'auto', 'early'], default='mixed'
    )
    made.add_argument('--transactions', action='store_true', help='copy to another topic')
    made.add_argument(
        '--helped', dest='is_helped', action='store_true', help='copy with kafka.exactly_once'
    )
    made.add_argument(
        '--raise', dest='raises', action='store_true', help='raise exceptions into members'
    )
    made.add_argument('--every', type=float, default=1.0, help='mean seconds between two of them')
    made.add_argument('--seed', type=int, help='of the first round')
    made.add_argument('--told', help='a file to keep all in that members said')
    made.add_argument('--slow', action='store_true', help='the machine is busy')
    return made


def main(arguments=None):
    """Run rounds; return the exit code."""
    options = parser().parse_args(arguments)
    if options.seed is None:
        options.seed = random.randrange(10**6)
    bad = 0
    (release,) = chosen(options.release)
    with PatientCluster(release, 3, SLOW if options.slow else None) as cluster:
        for _ in range(options.rounds):
            name = 'groups-%s-%d' % (options.protocol, options.seed)
            one = Round(cluster, name, options)
            found = one.run()
            sys.stdout.write('%s\n' % (found,))
            if not (found.is_good or options.told):
                path = os.path.join(tempfile.gettempdir(), name + '.told')
                one.write_down(path)
                sys.stdout.write('what its members said: %s\n' % path)
            sys.stdout.flush()
            bad += not found.is_good
            options.seed += 1
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
