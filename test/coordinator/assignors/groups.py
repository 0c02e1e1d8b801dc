"""Groups of members and clusters of which only partitions are known, for tests of assignors."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import strategies as st

from kafka.coordinator.assignors.subscriptions import GroupSubscription, shown_to_assignors


class Cluster:
    """Topics of so many partitions, and nothing else."""

    def __init__(self, **topics):
        self.topics = topics

    def partitions_for_topic(self, topic):
        return set(range(self.topics[topic])) if topic in self.topics else None


class RackedCluster(Cluster):
    """Topics whose partitions are kept in racks: {topic: ['ab', 'b', ...]}, one letter each."""

    def __init__(self, **topics):
        super().__init__(**{topic: len(racks) for topic, racks in topics.items()})
        self.racks = topics

    def partition(self, topic, number):
        return SimpleNamespace(replicas=[ord(rack) for rack in self.racks[topic][number]])

    def broker_metadata(self, node):
        return SimpleNamespace(rack=chr(node))


def member(name, topics, owned=(), generation=-1, **others):
    """Return a member; topics, and owned as 't0 t1', of one letter and a number each."""
    owned = [(each[0], int(each[1:])) for each in owned.split()] if owned else ()
    return GroupSubscription(
        name, topics=list(topics), owned=owned, generation=generation, **others
    )


def shown(*members):
    """Return members as assignors get them."""
    return shown_to_assignors(members)


def text(assigned):
    """Return {member: 't0 t1'} of an assignment, or of shares."""
    return {
        str(name): ' '.join(
            '%s%d' % each for each in (share if isinstance(share, list) else share.partitions())
        )
        for name, share in assigned.items()
    }


TOPICS = 'abcde'


@st.composite
def groups(draw, same_topics=None):
    """Draw (cluster, members): who wants what, of a cluster that does not know all of it."""
    cluster = Cluster(**draw(st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 12))))
    wishes = st.sets(st.sampled_from(TOPICS), min_size=1)
    if draw(st.booleans()) if same_topics is None else same_topics:
        wishes = st.just(draw(wishes))
    count = draw(st.integers(1, 7))
    return cluster, [member('m%d' % number, sorted(draw(wishes))) for number in range(count)]


def check_each_partition_has_one_reader(cluster, members, shares):
    """Check that all that can be read is read once, by who wants it."""
    given = sorted(partition for share in shares.values() for partition in share)
    wanted = {topic for each in members for topic in each.topics} & cluster.topics.keys()
    assert given == sorted((t, n) for t in wanted for n in range(cluster.topics[t]))
    assert shares.keys() == {each.member_id for each in members}
    for each in members:
        assert {topic for topic, _ in shares[each.member_id]} <= set(each.topics)
