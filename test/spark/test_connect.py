"""Sessions of Spark Connect: the same DataFrames, whose plans run on a server."""

from __future__ import annotations

import pytest

from test.spark import elsewhere
from test.spark.oracle import Apart

pytestmark = [pytest.mark.spark, pytest.mark.thorough]


@pytest.fixture(scope='module')
def connect():
    """A session of Spark Connect, whose server runs tasks in two threads."""
    pytest.importorskip('grpc', reason="no Spark Connect here: pip install 'pyspark[connect]'")
    with Apart({'spark.remote': 'local[2]'}) as running:
        yield running


def test_a_topic_is_read(connect, broker, topic):
    elsewhere.check_reading(connect, broker, topic)


def test_a_frame_is_written(connect, broker, topic):
    elsewhere.check_writing(connect, broker, topic)


def test_a_stream_is_read_and_written(connect, broker, topic, new_name, checkpoint):
    target = new_name()
    broker.create_topic(target, 2)
    elsewhere.check_streaming(connect, broker, topic, target, checkpoint, exactlyOnce='true')


def test_a_wrong_option_is_told(connect, broker, topic):
    elsewhere.check_refusal(connect, broker, topic)
