"""Writes that end while a task still runs: Spark does not wait for those that it has killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip('pyspark', reason='no pyspark: install the extra spark')

from kafka.errors import KafkaError
from kafka.producer import KafkaProducer
from kafka.producer.two_phase_commit import PreparedTransactions
from test.spark.committed import is_open, values_of, wait_until
from test.spark.conftest import ROOT
from test.spark.held_writes import HeldSource, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.thorough]
#: What a program with two executors may take on a machine that has much to do.
SECONDS = 300


@pytest.mark.parametrize(
    'point, has_column', [('before', False), ('before', True), ('initialised', False)]
)
def test_a_task_that_runs_on_leaves_no_transaction(
    spark, real_broker, real_topic, tmp_path, point, has_column
):
    """It begins when the driver has looked for what is open; rows name their topic, or do not."""
    from pyspark.errors import PythonException

    spark.dataSource.register(HeldSource)
    query = "select repeat('x', if(id = 19, 2000000, 1)) value, '%s' topic from range(0, 20, 1, 2)"
    writer = spark.sql(query % real_topic).write.format('kafka-held').mode('append')
    if not has_column:
        writer = writer.option('topic', real_topic)
    writer = writer.option('kafka.bootstrap.servers', real_broker.bootstrap)
    writer = writer.options(exactlyOnce='true', transactionalIdPrefix=str(tmp_path / point))
    with pytest.raises(PythonException, match=r'row 9 of.*kafka\.max\.request\.size'):
        writer.save()
    assert (tmp_path / 'ended').exists()
    wait_for(tmp_path / 'over', 5)  # unless Spark has killed it by then
    assert not is_open(real_broker, real_topic)


def test_an_attempt_that_another_one_has_overtaken_leaves_no_transaction(
    real_broker, real_topic, tmp_path
):
    """By speculation: the second attempt was taken and committed when the first goes on."""
    points = ['before', 'initialised']
    options = {
        'bootstrap': real_broker.bootstrap,
        'topic': real_topic,
        'folder': str(tmp_path),
        'points': points,
    }
    with open(tmp_path / 'log', 'w+') as log:
        with subprocess.Popen(
            [sys.executable, '-m', 'test.spark.speculating', json.dumps(options)],
            cwd=str(ROOT),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        ) as program:
            try:
                code = program.wait(SECONDS)
            finally:
                with contextlib.suppress(ProcessLookupError):  # none of its processes is left
                    os.killpg(program.pid, signal.SIGKILL)
        log.seek(0)
        assert code == 0, log.read()[-4000:]
    for point in points:
        assert 'the write is over' in (tmp_path / point / 'error').read_text()
    assert not is_open(real_broker, real_topic)
    assert sorted(values_of(real_broker, real_topic, 'read_committed')) == list(range(40))


def test_brokers_tell_of_producers_that_have_not_begun(real_broker, real_topic, new_name):
    """New ids, and those that had a transaction: in the state Empty, by which they are found."""
    prefix, bootstrap = new_name(), real_broker.bootstrap
    with PreparedTransactions(bootstrap_servers=bootstrap) as client:
        if client.held_ids(prefix) is None:
            pytest.skip('brokers before 3.0 do not tell')
        with KafkaProducer(bootstrap_servers=bootstrap, transactional_id=prefix) as first:
            first.init_transactions()
            assert client.held_ids(prefix) == [prefix] and client.open_ids(prefix) == []
            first.begin_transaction()
            first.send(real_topic, b'x')
            first.commit_transaction()
            assert wait_until(lambda: not client.held_ids(prefix))
        with KafkaProducer(bootstrap_servers=bootstrap, transactional_id=prefix) as second:
            second.init_transactions()
            assert client.held_ids(prefix) == [prefix]
            assert client.fence([prefix]) == {}
            second.begin_transaction()
            with pytest.raises(KafkaError):
                second.send(real_topic, b'y').get(30)
            with pytest.raises(KafkaError):
                second.abort_transaction()
    assert not is_open(real_broker, real_topic)
