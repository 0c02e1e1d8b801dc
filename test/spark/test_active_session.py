"""Threads that did not make the session write by the format."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

import kafka.spark
from kafka.spark.active_session import active
from test.spark.elsewhere import stored
from test.spark.embedded import fill

SECONDS = 120


class Sessions:
    """Stands for the JVM's class SparkSession, in one thread."""

    def __init__(self, current=None):
        self.current = current

    def getActiveSession(self):
        found = self.current
        return SimpleNamespace(isDefined=lambda: found is not None, get=lambda: found)

    def setActiveSession(self, session):
        self.current = session

    def clearActiveSession(self):
        self.current = None


@pytest.mark.parametrize('before', [None, 'another'])
def test_the_session_is_active_for_a_while(before):
    sessions = Sessions(before)
    session = SimpleNamespace(
        _jsparkSession='mine', _jvm='jvm', _get_j_spark_session_class=lambda jvm: sessions
    )
    with pytest.raises(ZeroDivisionError), active(session):
        assert sessions.current == 'mine'
        raise ZeroDivisionError
    assert sessions.current == before


def test_a_session_that_cannot_be_restored_does_not_hide_what_failed(caplog):
    sessions = Sessions()
    session = SimpleNamespace(
        _jsparkSession='mine', _jvm='jvm', _get_j_spark_session_class=lambda jvm: sessions
    )
    with pytest.raises(ZeroDivisionError), active(session):
        sessions.clearActiveSession = None
        raise ZeroDivisionError
    assert 'cleaning up after ZeroDivisionError failed' in caplog.text


def test_a_session_of_connect_is_left_alone():
    with active(SimpleNamespace()):
        pass


@pytest.mark.spark
def test_a_thread_that_did_not_make_the_session_writes(spark, broker, topic, new_name, checkpoint):
    """Spark looks the format up in the active session, which such a thread has none of."""
    kafka.spark.register(spark)
    servers = {'kafka.bootstrap.servers': broker.bootstrap}
    fill(broker, topic, 0, [b'streamed'])
    target = new_name()
    broker.create_topic(target, 2)
    failures = []

    def write():
        try:
            frame = spark.sql("SELECT 'batch' AS value")
            frame.write.format('kafka-py').mode('append').options(**servers, topic=target).save()
            reader = spark.readStream.format('kafka-py').options(**servers, subscribe=topic)
            stream = reader.option('startingOffsets', 'earliest').load().select('value')
            writer = stream.writeStream.format('kafka-py').options(**servers, topic=target)
            writer = writer.option('checkpointLocation', checkpoint).trigger(availableNow=True)
            assert writer.start().awaitTermination(SECONDS)
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    thread.join(2 * SECONDS)
    assert failures == []
    assert stored(broker, target) == [(None, b'batch'), (None, b'streamed')]
