"""What kills, retention and wrong passwords do to queries: nothing is lost, doubled or kept quiet.

A query that is killed is a program of its own (fault_program.py, copying.py).
KAFKA_SPARK_FAULTS=all kills more: that starts several programs, or executors, one after the other.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

pytest.importorskip('pyspark', reason='no pyspark: install the extra spark')

import kafka.spark
from kafka.testing import Cluster as EmbeddedCluster
from servers.cluster import Cluster
from test.spark import topics
from test.spark.committed import is_open, values_of
from test.spark.conftest import ROOT, real_release
from test.spark.embedded import fill
from test.spark.fault_program import seen
from test.spark.killing import Query
from test.spark.oracle import version

pytestmark = [pytest.mark.spark, pytest.mark.thorough]


@pytest.fixture
def several_batches():
    """Skip a test that reads several batches in one run where there is only one."""
    if version() in ('4.0', '4.1'):
        pytest.skip('PySpark before 4.2 makes one batch of a run with availableNow')


SECONDS = 120
COUNT = 400

IS_ALL = os.environ.get('KAFKA_SPARK_FAULTS') == 'all'
heavy = pytest.mark.skipif(
    not IS_ALL,
    reason='takes minutes: KAFKA_SPARK_FAULTS=all runs it',
)


# ---------------------------------------------------------------- a query that is killed


class Program:
    """A query in a program of its own, that is started, killed and started again."""

    def __init__(self, broker, topic, folder, master):
        self.folder = folder
        self.asked = json.dumps(
            {
                'master': master,
                'bootstrap': broker.bootstrap,
                'topic': topic,
                'checkpoint': str(folder / 'checkpoint'),
                'folder': str(folder),
                'count': COUNT,
            }
        )
        self.process = None

    def start(self):
        with open(self.folder / 'log', 'ab') as log:
            self.process = subprocess.Popen(
                [sys.executable, '-m', 'test.spark.fault_program', self.asked],
                cwd=str(ROOT),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a group of its own: the JVM dies with it
            )

    def kill(self, after):
        """Kill it and its JVM once it has read so many offsets more."""
        wanted = seen(self.folder) + after
        end = time.monotonic() + SECONDS
        while seen(self.folder) < wanted:
            assert self.process.poll() is None, self.log()
            assert time.monotonic() < end, self.log()
            time.sleep(0.02)
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def end(self):
        """Let it run to its end."""
        assert self.process.wait(SECONDS + 30) == 0, self.log()

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def log(self):
        return (self.folder / 'log').read_text()[-4000:]

    def batches(self):
        """{batch: [offsets, by each program that read it]}."""
        found = {}
        for path in self.folder.glob('*.*.json'):
            number = int(path.name.split('.')[0])
            found.setdefault(number, []).append(json.loads(path.read_text()))
        return found


@pytest.fixture
def program(real_broker, new_name, tmp_path):
    topic = new_name()
    real_broker.create_topic(topic, 2, config=topics.KEPT)
    records = [{'partition': n % 2, 'value': b'%d' % n} for n in range(COUNT)]
    topics.fill(real_broker, topic, records)
    made = []

    def give(master):
        made.append(Program(real_broker, topic, tmp_path, master))
        return made[-1]

    yield give
    for each in made:
        each.stop()


ALL = sorted([partition, offset] for partition in (0, 1) for offset in range(COUNT // 2))


def check(program, kills):
    """Each offset was read once, by the log of batches; a batch that was repeated was the same."""
    assert sorted(json.loads((program.folder / 'read.json').read_text())) == ALL
    assert (program.folder / 'died').exists(), 'no worker was killed'
    batches = program.batches()
    assert sorted(batches) == list(range(len(batches)))
    assert all(each == some[0] for some in batches.values() for each in some)
    assert sorted(row for some in batches.values() for row in some[0]) == ALL
    assert len(list(program.folder.glob('began.*'))) == kills + 1


def test_a_worker_and_a_query_that_are_killed_lose_and_double_nothing(program):
    """A worker dies in a task, which is tried again; then the query dies in a batch."""
    query = program('local[2,3]')
    query.start()
    query.kill(150)
    query.start()
    query.end()
    check(query, 1)


@heavy
def test_a_query_that_is_killed_again_and_again_loses_and_doubles_nothing(program):
    query = program('local[2,3]')
    for after in (1, 50, 60, 40, 100):
        query.start()
        query.kill(after)
    query.start()
    query.end()
    check(query, 5)


# ---------------------------------------------------------------- executors that are killed

#: Tasks that kill the executor that they run on, in the middle of what they write: (batch, task).
DEADLY = [(0, 1), (1, 0)]
MORE_DEADLY = [(2, 1), (3, 0), (3, 1), (4, 1)]


def test_executors_that_are_killed_lose_and_double_nothing(
    several_batches, real_broker, new_name, tmp_path
):
    """They die while a query reads and writes exactly once; what they ran goes on for a while."""
    source, target = new_name(), new_name()
    for name in (source, target):
        real_broker.create_topic(name, 2, config=topics.KEPT)
    records = [{'partition': n % 2, 'value': b'%d' % n} for n in range(COUNT)]
    topics.fill(real_broker, source, records)
    deadly = DEADLY + MORE_DEADLY * IS_ALL
    options = {
        'master': 'local-cluster[2,1,1024]',
        'bootstrap': real_broker.bootstrap,
        'source': source,
        'target': target,
        'checkpoint': str(tmp_path / 'checkpoint'),
        'folder': str(tmp_path),
        'per_batch': COUNT // 5,
        'deadly': deadly,
        'settings': {'spark.executor.extraJavaOptions': '-XX:TieredStopAtLevel=1'},
        'trigger': {'availableNow': True},
    }
    with Query(options) as query:
        query.start()
        assert query.wait(2 * SECONDS) == 0, query.logs()
        assert query.batches() == 5
    killed = sorted(each.name for each in tmp_path.glob('killed.*'))
    assert killed == sorted('killed.%d.%d' % each for each in deadly), query.logs()
    found = sorted(values_of(real_broker, target, 'read_committed'))
    assert found == list(range(COUNT))
    assert len(values_of(real_broker, target, 'read_uncommitted')) > COUNT  # it did write before
    assert not is_open(real_broker, target)


# ---------------------------------------------------------------- a broker that is killed


@pytest.fixture(scope='module')
def three():
    """Three brokers, of which the tests kill one."""
    with Cluster(real_release(), 3) as running:
        yield running


def leader_of(cluster, topic):
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({'bootstrap.servers': cluster.bootstrap})
    return admin.list_topics(topic, 30).topics[topic].partitions[0].leader


def halting(batches, folder):
    """Stop behind the first Arrow batch of a task until a broker was killed."""
    for batch in batches:
        yield batch
        (folder / 'reading').touch()
        deadline = time.monotonic() + SECONDS
        while not (folder / 'killed').exists() and time.monotonic() < deadline:
            time.sleep(0.02)


def wait(is_so):
    """Wait for something, but not for ever: what follows tells whether it came."""
    deadline = time.monotonic() + SECONDS
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.05)


def test_queries_go_on_when_a_broker_is_killed(spark, three, new_name, tmp_path):
    """A batch and a stream that read of the leader that dies."""
    kafka.spark.register(spark)
    topic = new_name()
    three.create_topic(topic, 2, config=topics.KEPT)
    records = [{'partition': n % 2, 'value': b'x' * 5000} for n in range(8000)]
    topics.fill(three, topic, records)
    options = {
        'kafka.bootstrap.servers': three.bootstrap,
        'subscribe': topic,
        'startingOffsets': 'earliest',
        'kafka.fetch.max.bytes': '500000',
        'kafka.max.partition.fetch.bytes': '100000',
    }
    stream = spark.readStream.format('kafka-py').options(**options, maxOffsetsPerTrigger='2000')
    rows = []

    def take(frame, _):
        rows.extend(tuple(row) for row in frame.select('partition', 'offset').collect())

    writer = stream.load().writeStream.foreachBatch(take)
    writer = writer.option('checkpointLocation', str(tmp_path / 'checkpoint'))
    frame = spark.read.format('kafka-py').options(**options).load().select('partition', 'offset')

    def kill():
        wait((tmp_path / 'reading').exists)
        three.kill(leader_of(three, topic))
        (tmp_path / 'killed').touch()

    killer = threading.Thread(target=kill)
    query = writer.trigger(processingTime='0 seconds').start()
    try:
        wait(lambda: rows or query.exception() is not None)
        killer.start()
        halts = functools.partial(halting, folder=tmp_path)
        read = frame.mapInArrow(halts, 'partition int, offset long').collect()
        wait(lambda: len(rows) >= 8000 or query.exception() is not None)
        assert query.exception() is None
    finally:
        query.stop()
        killer.join(SECONDS)
    wanted = [(partition, offset) for partition in (0, 1) for offset in range(4000)]
    assert sorted(map(tuple, read)) == wanted
    assert sorted(rows) == wanted


# ---------------------------------------------------------------- retention, and passwords


@pytest.mark.parametrize('fails', ['true', 'false'])
def test_retention_that_overtakes_a_stream(several_batches, spark, checkpoint, fails):
    """Between two batches, of which the second had begun where there is nothing any more."""
    kafka.spark.register(spark)
    with EmbeddedCluster(topics={'t': 1}) as cluster:
        fill(cluster, 't', 0, [b'%d' % n for n in range(40)])
        log = cluster.state.topics['t'].partitions[0].log
        rows = []

        def take(frame, batch):
            rows.extend(row.offset for row in frame.select('offset').collect())
            if batch == 0:
                log.delete_before(27)

        reader = spark.readStream.format('kafka-py').option('subscribe', 't')
        reader = reader.option('kafka.bootstrap.servers', cluster.bootstrap)
        reader = reader.options(startingOffsets='earliest', maxOffsetsPerTrigger='10')
        writer = reader.option('failOnDataLoss', fails).load().writeStream.foreachBatch(take)
        query = writer.option('checkpointLocation', checkpoint).trigger(availableNow=True).start()
        if fails == 'true':
            with pytest.raises(Exception, match='offsets 10 to 19 are gone') as caught:
                query.awaitTermination(SECONDS)
            assert 'KAFKA_DATA_LOSS' in str(caught.value)
            assert 'set failOnDataLoss to false' in str(caught.value)
            assert rows == [*range(10)]
        else:
            assert query.awaitTermination(SECONDS)
            assert rows == [*range(10), *range(27, 40)]


SECRET = 'v3ry-s3cret'


@pytest.mark.parametrize('way', ['options of the client', 'a JAAS line'])
def test_credentials_that_are_refused_fail_the_first_action(spark, way, caplog):
    kafka.spark.register(spark)
    module = 'org.apache.kafka.common.security.plain.PlainLoginModule'
    line = module + ' required username="u" password="%s";'
    login = {
        'options of the client': {
            'kafka.sasl.username': 'u',
            'kafka.sasl.password': SECRET,
        },
        'a JAAS line': {'kafka.sasl.jaas.config': line % SECRET},
    }[way]
    with EmbeddedCluster(topics={'t': 1}, sasl={'u': 'right'}) as cluster:
        reader = spark.read.format('kafka-py').option('subscribe', 't')
        reader = reader.option('kafka.bootstrap.servers', cluster.bootstrap)
        reader = reader.options(
            **{'kafka.security.protocol': 'SASL_PLAINTEXT', 'kafka.sasl.mechanism': 'PLAIN'},
            **login,
        )
        began = time.monotonic()
        with pytest.raises(Exception) as caught:
            reader.load().count()
        assert time.monotonic() - began < 60
    text = str(caught.value)
    assert 'kafka.sasl.jaas.config' in text and 'sasl_plain' not in text, text
    assert 'AuthenticationFailed' in text or 'SaslAuthentication' in text, text
    assert SECRET not in text and SECRET not in repr(caught.value) and SECRET not in caplog.text
