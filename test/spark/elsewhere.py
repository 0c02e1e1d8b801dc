"""What is to work in sessions of every kind: a batch read and written, a stream read and written.

Owns these checks, for test_connect.py and test_local_cluster.py. The session is in a process of its
own (``Apart``), the brokers are embedded, and what is there is written and read without Spark.
"""

from __future__ import annotations

from kafka.consumer.bounded.reader import BoundedReader
from kafka.producer import KafkaProducer
from test.spark.embedded import fill
from test.spark.oracle import OURS


def stored(broker, topic):
    """Return the (key, value) of all records of a topic that are committed, sorted."""
    with BoundedReader(
        topic, bootstrap_servers=broker.bootstrap, isolation_level='read_committed'
    ) as reader:
        return sorted((record.key, record.value) for record in reader)


def options(broker, **more):
    """Return options of a source or sink."""
    return {'kafka.bootstrap.servers': broker.bootstrap, **more}


def check_reading(apart, broker, topic):
    """Every record is a row, with its place, in more than one task."""
    fill(broker, topic, 0, [b'%d' % each for each in range(100)])
    fill(broker, topic, 1, [b'%d' % each for each in range(50)])
    given = options(broker, subscribe=topic, minPartitions='4')
    done = apart.do('read', OURS, given)
    assert done.failure is None, done.failure
    found = [(partition, offset, value) for _, value, _, partition, offset, *_ in done.rows]
    assert found == [
        (partition, each, b'%d' % each)
        for partition, number in ((0, 100), (1, 50))
        for each in range(number)
    ]
    assert len(apart.do('read', OURS, given).rows) == 150  # by clients that were kept


def check_writing(apart, broker, topic):
    """Every row is a record."""
    query = 'SELECT CAST(id AS STRING) AS key, CAST(id * id AS STRING) AS value FROM range(200)'
    done = apart.do('write', OURS, query, options(broker, topic=topic))
    assert done.failure is None, done.failure
    assert stored(broker, topic) == sorted(
        (b'%d' % each, b'%d' % (each * each)) for each in range(200)
    )


def check_streaming(apart, broker, topic, target, checkpoint, **sink):
    """A query writes each record once, and goes on from its checkpoint."""
    for run in range(2):
        with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            for each in range(run * 100, run * 100 + 100):
                producer.send(topic, b'v%d' % each, key=b'%d' % each)
        done = apart.do(
            'pipe',
            OURS,
            options(broker, subscribe=topic, startingOffsets='earliest'),
            ['key', 'upper(CAST(value AS STRING)) AS value'],
            OURS,
            options(broker, topic=target, **sink),
            checkpoint,
        )
        assert done.failure is None, done.failure
        assert stored(broker, target) == sorted(
            (b'%d' % each, b'V%d' % each) for each in range(run * 100 + 100)
        )


def check_refusal(apart, broker, topic):
    """What is wrong is told with the option's name, as in any session."""
    failure = apart.do('read', OURS, options(broker, subscribe=topic, minPartitions='no')).failure
    assert 'minPartitions' in failure.text or 'minpartitions' in failure.text
