"""Our members beside those of kafka-python 3.0.12 and confluent-kafka in one group.

Each is a process of its own (group_member.py). They have the same assignor and understand each
other's subscriptions and assignments, whoever of them leads the group; records are handed out once,
and what one committed another goes on from (group_judge.py).
"""

from __future__ import annotations

import sys

import pytest

from test.foreign.clients import CLIENTS, Missing, environment
from test.integration.chaos_judge import value_of
from test.integration.group_judge import judge, stints_of
from test.integration.group_processes import Group
from test.integration.judges import BrokerOffsets

pytestmark = [
    pytest.mark.integration,
    pytest.mark.thorough,
    pytest.mark.releases(since='0.10.1', some=('0.11.0.3', '2.8.2', '4.4.0')),
]

PARTITIONS = 6
RECORDS = 50  # of a partition, each time


def python_of(client):
    """Return the interpreter that has a client."""
    if client == 'confluent':
        pytest.importorskip('confluent_kafka')
        return sys.executable
    (found,) = (each for each in CLIENTS if each.name == 'kafka-python 3.0.12')
    try:
        return str(environment(found))
    except Missing as reason:
        pytest.skip(str(reason))


@pytest.fixture
def topic(cluster, new_name):
    """The name of a topic with six partitions."""
    name = new_name()
    cluster.create_topic(name, PARTITIONS)
    return name


class Records:
    """Writes numbered records, and knows the logs that come of it."""

    def __init__(self, topic, fill):
        self.topic, self.fill = topic, fill
        self.logs = {p: {} for p in range(PARTITIONS)}
        self.count = 0

    def write(self, each=RECORDS):
        """Write so many to each partition."""
        contents = {}
        for partition, log in self.logs.items():
            numbers = range(self.count, self.count + each)
            contents[partition] = [value_of(number) for number in numbers]
            log.update(zip(range(len(log), len(log) + each), numbers))
            self.count += each
        self.fill({self.topic: contents})


@pytest.fixture
def records(topic, fill):
    return Records(topic, fill)


def a_group(cluster, topic, group, **options):
    """Return members to be; before 0.11 nothing is committed, and kafka-python refuses to ask."""
    isolation = 'read_committed' if cluster.release.version >= (0, 11) else 'read_uncommitted'
    where = {'bootstrap': cluster.bootstrap, 'topic': topic, 'group': group}
    return Group(**where, isolation=isolation, **options)


def check(cluster, group, topic, members, records):
    """Stop all, then judge all that was said."""
    members.stop()
    stored = BrokerOffsets(cluster).stored(group, topic, range(PARTITIONS))
    verdict = judge(records.logs, stints_of(members.lives), stored)
    errors = {each.name: each.errors for each in members.lives if each.errors}
    assert verdict.is_good, '%s; met %s' % (verdict, errors)
    return verdict


FOREIGN = [
    ('kafka-python', 'classic', 'range'),
    ('kafka-python', 'classic', 'roundrobin'),
    ('kafka-python', 'classic', 'sticky'),
    ('kafka-python', 'classic', 'cooperative-sticky'),
    ('confluent', 'classic', 'range'),
    ('confluent', 'classic', 'roundrobin'),
    ('confluent', 'classic', 'cooperative-sticky'),
    pytest.param('confluent', 'consumer', 'range', marks=pytest.mark.releases(since='4.0')),
]
beside = pytest.mark.parametrize(('client', 'protocol', 'assignor'), FOREIGN)


@beside
@pytest.mark.parametrize('is_ours_first', [True, False], ids=['ours-leads', 'theirs-leads'])
def test_members_of_two_clients_share_a_group(
    cluster, topic, group, records, client, protocol, assignor, is_ours_first
):
    theirs = {'client': client, 'python': python_of(client)}
    first, second = ({}, theirs) if is_ours_first else (theirs, {})
    options = {'protocol': protocol, 'assignor': assignor}
    records.write()
    with a_group(cluster, topic, group, **options) as members:
        members.add(**first)
        members.wait(lambda: members.share(PARTITIONS))
        members.wait(lambda: len(set(members.numbers_seen)) == records.count)
        members.add(**second)
        members.wait(lambda: members.share(PARTITIONS))
        records.write()
        members.wait(lambda: len(set(members.numbers_seen)) == records.count)
        check(cluster, group, topic, members, records)


@beside
def test_each_takes_over_what_the_other_was_killed_with(
    cluster, topic, group, records, client, protocol, assignor
):
    options = {'protocol': protocol, 'assignor': assignor}
    with a_group(cluster, topic, group, **options) as members:
        members.add()
        members.add(client=client, python=python_of(client))
        members.wait(lambda: members.share(PARTITIONS))
        for place in (0, 1):
            records.write()
            members.wait(lambda: len(set(members.numbers_seen)) >= records.count - RECORDS)
            members.places[place].kill()
            other = members.places[1 - place]
            members.wait(lambda other=other: len(other.owned) == PARTITIONS)
            records.write()
            members.wait(lambda: len(set(members.numbers_seen)) == records.count)
            members.replace(place)
            members.wait(lambda: members.share(PARTITIONS))
        check(cluster, group, topic, members, records)


@pytest.mark.parametrize('client', ['kafka-python', 'confluent'])
@pytest.mark.parametrize('assignor', ['range', 'cooperative-sticky'])
def test_three_members_of_three_kinds_of_which_each_leaves_once(
    cluster, topic, group, records, client, assignor
):
    with a_group(cluster, topic, group, assignor=assignor, commits='async') as members:
        members.add()
        members.add(client=client, python=python_of(client))
        members.add()
        members.wait(lambda: members.share(PARTITIONS))
        records.write()
        for place in (0, 1, 2):
            leaving = members.places[place]
            leaving.stop()
            rest = [each for each in members.places if each is not leaving]
            members.wait(
                lambda rest=rest: (
                    set().union(*(each.owned for each in rest)) == set(range(PARTITIONS))
                )
            )
            members.replace(place)
            members.wait(lambda: members.share(PARTITIONS))
            records.write()
        members.wait(lambda: len(set(members.numbers_seen)) == records.count)
        check(cluster, group, topic, members, records)
