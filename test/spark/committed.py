"""What readers of a level of isolation see of a topic, and whether they are kept waiting."""

from __future__ import annotations

import time

from kafka import KafkaConsumer, TopicPartition


def values_of(cluster, topic, level):
    """Return what a topic has for readers of a level of isolation."""
    found = []
    with KafkaConsumer(bootstrap_servers=cluster.bootstrap, isolation_level=level) as consumer:
        places = [TopicPartition(topic, each) for each in consumer.partitions_for_topic(topic)]
        consumer.assign(places)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(places)
        while any(consumer.position(each) < ends[each] for each in places):
            for records in consumer.poll(1000).values():
                found += [int(each.value) for each in records]
    return found


def ends(cluster, topic, level):
    """Return where two partitions end for readers of a level of isolation."""
    with KafkaConsumer(bootstrap_servers=cluster.bootstrap, isolation_level=level) as consumer:
        places = [TopicPartition(topic, number) for number in range(2)]
        found = consumer.end_offsets(places)
        return [found[place] for place in places]


def wait_until(is_so):
    """Wait for something for some seconds; return whether it came."""
    deadline = time.monotonic() + 10
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def is_open(cluster, topic):
    """Tell whether a transaction keeps readers waiting that does not end within some seconds."""
    return not wait_until(
        lambda: ends(cluster, topic, 'read_committed') == ends(cluster, topic, 'read_uncommitted')
    )
