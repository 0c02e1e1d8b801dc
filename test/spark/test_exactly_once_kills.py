"""A query that writes exactly once is killed at random moments, all of it or a part.

``KAFKA_KILLS`` says how often (as many as fit into two minutes, unless it is given),
``KAFKA_KILLS_SEED`` which run it is: the seed of each run is printed.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter

import pytest

from kafka.producer import KafkaProducer
from test.spark.committed import values_of
from test.spark.killing import Query

RECORDS = 20000
PER_BATCH = 150
#: How long a query may take to its next batch, on a machine that has much to do.
SECONDS = 180
KILLS = int(os.environ.get('KAFKA_KILLS', '3'))
pytestmark = [
    pytest.mark.spark,
    pytest.mark.thorough,
    pytest.mark.timeout(2 * SECONDS + 60 * KILLS),
]
#: What may be killed of a run of the query, by its master; one in three has executors of its own.
LOCAL, CLUSTER = 'local[2,4]', 'local-cluster[2,1,1024]'
MASTERS = (LOCAL, LOCAL, CLUSTER)
WHAT = {
    LOCAL: ('query', 'worker'),
    CLUSTER: ('query', 'executor', 'executor', 'worker'),
}
#: So that it is up soon.
SETTINGS = {'spark.driver.extraJavaOptions': '-XX:TieredStopAtLevel=1'}


def test_each_row_is_there_once_whatever_was_killed(real_broker, new_name, tmp_path, capsys):
    seed = os.environ.get('KAFKA_KILLS_SEED') or str(random.randrange(10**6))
    chance = random.Random(seed)
    source, target = new_name(), new_name()
    real_broker.create_topic(source, 3, config={'retention.ms': '-1'})
    real_broker.create_topic(target, 2, config={'retention.ms': '-1'})
    with KafkaProducer(bootstrap_servers=real_broker.bootstrap) as producer:
        for number in range(RECORDS):
            producer.send(source, b'%d' % number, partition=number % 3)
    options = {
        'bootstrap': real_broker.bootstrap,
        'source': source,
        'target': target,
        'checkpoint': str(tmp_path / 'checkpoint'),
        'folder': str(tmp_path),
        'per_batch': PER_BATCH,
        'shuffle': True,
        'settings': SETTINGS,
        'trigger': {'processingTime': '0 seconds'},
    }

    def say(text, *arguments):
        with capsys.disabled():
            sys.stdout.write(text % arguments + '\n')
            sys.stdout.flush()

    say('\nseed %s, %d kills', seed, KILLS)
    killed, failed = Counter(), 0
    began = time.monotonic()
    with Query(options) as query:
        while sum(killed.values()) < KILLS:
            if not query.is_running():
                master = chance.choice(MASTERS)
                query.start(master=master)
            if not query.wait_for_batch(SECONDS):
                failed += 1  # too much was killed of one batch: it is started again
                query.kill_all()
                continue
            time.sleep(chance.uniform(0.0, 3.0))
            what = query.kill(chance.choice(WHAT[master]), chance)
            killed[what] += 1
            say('%4d s: %s killed at batch %d', time.monotonic() - began, what, query.batches())
        query.kill_all()
        query.start(master=LOCAL, per_batch=20000, trigger={'availableNow': True})
        assert query.wait(SECONDS) == 0, query.logs()
    found = Counter(values_of(real_broker, target, 'read_committed'))
    written = len(values_of(real_broker, target, 'read_uncommitted'))
    lost = RECORDS - len(found)
    doubled = sum(count - 1 for count in found.values())
    say(
        '%s killed, %d runs ended by themselves: of %d rows %d lost, %d doubled; %d were written',
        dict(killed), failed, RECORDS, lost, doubled, written,
    )  # fmt: skip
    assert (lost, doubled) == (0, 0)
    assert set(found) == set(range(RECORDS))
