"""No secret of an option is in what Spark shows of a job: its plans, its progress, its window."""

from __future__ import annotations

import pytest

import kafka.spark
from test.spark.embedded import fill

pytestmark = pytest.mark.spark
CANARY = 'canary-bird'
JAAS = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice"'
    ' password="%s";' % CANARY
)


def plans(spark):
    """Return what the window of Spark shows of all jobs so far."""
    found = spark._jsparkSession.sharedState().statusStore().executionsList()
    return '\n'.join(found.apply(each).physicalPlanDescription() for each in range(found.size()))


@pytest.fixture
def secured(spark, broker):
    """Options with secrets, which a broker without logins is not told.

    Spark itself hides the first one wherever it shows options, by the word password; the key as
    the session was told to do by register().
    """
    kafka.spark.register(spark)
    return {
        'kafka.bootstrap.servers': broker.bootstrap,
        'kafka.sasl.jaas.config': JAAS,
        'kafka.ssl.keystore.type': 'PEM',
        'kafka.ssl.keystore.key': '-----BEGIN PRIVATE KEY-----\n%s\n' % CANARY,
        'kafka.ssl.keystore.certificate.chain': '-----BEGIN CERTIFICATE-----\nabc\n',
    }


def test_of_what_is_read(spark, secured, broker, topic):
    fill(broker, topic, 0, [b'one'])
    rows = spark.read.format('kafka-py').options(**secured).option('subscribe', topic).load()
    assert [row.value for row in rows.collect()] == [b'one']
    shown = plans(spark) + rows._jdf.queryExecution().toString() + repr(rows)
    assert 'BatchScan kafka-py' in shown and CANARY not in shown


def test_of_what_is_written(spark, secured, topic):
    rows = spark.range(3).selectExpr('CAST(id AS string) AS value')
    writer = rows.write.format('kafka-py').options(**secured).option('topic', topic)
    writer.mode('append').save()
    shown = plans(spark)
    assert 'kafka' in shown.lower() and CANARY not in shown


def test_of_a_query(spark, secured, broker, topic, checkpoint):
    fill(broker, topic, 0, [b'one'])
    stream = spark.readStream.format('kafka-py').options(**secured).option('subscribe', topic)
    rows = stream.option('startingOffsets', 'earliest').load().select('value')
    writer = rows.writeStream.format('kafka-py').options(**secured).option('topic', topic + '-out')
    query = writer.option('checkpointLocation', checkpoint).start()
    try:
        query.processAllAvailable()
        explained = query._jsq.explainInternal(True)
        progress = [str(each) for each in query.recentProgress]
    finally:
        query.stop()
    assert progress and 'kafka-py' in explained
    assert CANARY not in explained + ''.join(progress) + plans(spark)


def test_of_a_plan_that_has_options(spark, secured, topic):
    spark.conf.set('spark.sql.ui.explainMode', 'extended')
    try:
        rows = spark.range(3).selectExpr('CAST(id AS string) AS value')
        writer = rows.write.format('kafka-py').options(**secured).option('topic', topic)
        writer.mode('append').save()
        shown = plans(spark)
    finally:
        spark.conf.unset('spark.sql.ui.explainMode')
    assert '(redacted)' in shown and CANARY not in shown


def test_of_a_view(spark, secured, topic):
    given = ', '.join("`%s` '%s'" % item for item in secured.items())
    spark.sql(
        'CREATE OR REPLACE TEMPORARY VIEW secured USING `kafka-py` OPTIONS'
        " (%s, subscribe '%s')" % (given, topic)
    )
    shown = plans(spark)
    assert '(redacted)' in shown and CANARY not in shown


def test_registering_adds_to_what_a_session_hides_and_once(spark):
    name = 'spark.sql.redaction.options.regex'
    try:
        for before, after in (
            ('(?i)url|mine', r'(?i)url|mine|keystore\.key'),
            ('', r'(?i)keystore\.key'),
        ):
            spark.conf.set(name, before)
            for _ in range(2):
                kafka.spark.register(spark)
                assert spark.conf.get(name) == after
    finally:
        spark.conf.unset(name)
        kafka.spark.register(spark)
