"""Executors in processes of their own, as on a cluster: what they get of the driver is pickled."""

from __future__ import annotations

import pytest

from test.spark import elsewhere
from test.spark.conftest import SETTINGS
from test.spark.oracle import Apart

pytestmark = [pytest.mark.spark, pytest.mark.thorough]


@pytest.fixture(scope='module')
def local_cluster():
    """A session with two executors, each a process with one core."""
    compiler = SETTINGS['spark.driver.extraJavaOptions']
    settings = {
        'spark.master': 'local-cluster[2,1,1024]',
        'spark.executor.extraJavaOptions': compiler,
    }
    with Apart(settings) as running:
        yield running


def test_a_topic_is_read(local_cluster, broker, topic):
    elsewhere.check_reading(local_cluster, broker, topic)
    assert local_cluster.do('executors') == 2


def test_a_frame_is_written(local_cluster, broker, topic):
    elsewhere.check_writing(local_cluster, broker, topic)


def test_a_stream_is_read_and_written(local_cluster, broker, topic, new_name, checkpoint):
    target = new_name()
    broker.create_topic(target, 2)
    elsewhere.check_streaming(local_cluster, broker, topic, target, checkpoint, exactlyOnce='true')


def test_a_wrong_option_is_told(local_cluster, broker, topic):
    elsewhere.check_refusal(local_cluster, broker, topic)
