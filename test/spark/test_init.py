"""What the package offers, to a session that only looks like one; test_source.py has real ones."""

from __future__ import annotations

import subprocess
import sys

import pytest

import kafka.spark
from kafka.errors import KafkaConfigurationError


@pytest.fixture
def without_pyspark(monkeypatch):
    for name in ('source', 'listener'):
        monkeypatch.delitem(sys.modules, 'kafka.spark.' + name, raising=False)
    monkeypatch.delitem(kafka.spark.__dict__, 'LagListener', raising=False)
    monkeypatch.setitem(sys.modules, 'pyspark', None)
    monkeypatch.setitem(sys.modules, 'pyspark.sql.datasource', None)


def test_importing_it_needs_no_pyspark(without_pyspark):
    assert callable(kafka.spark.register)
    with pytest.raises(kafka.spark.MissingSparkError, match=r'kafka-evergreen\[spark\]'):
        _ = kafka.spark.LagListener
    with pytest.raises(AttributeError, match='no_such'):
        _ = kafka.spark.no_such


@pytest.mark.parametrize('call', [kafka.spark.register, kafka.spark.takeover])
def test_without_pyspark_the_extra_is_named(call, without_pyspark):
    with pytest.raises(kafka.spark.MissingSparkError, match=r'kafka-evergreen\[spark\]') as caught:
        call(object())
    assert isinstance(caught.value, KafkaConfigurationError)
    assert isinstance(caught.value, ImportError)


def test_a_broker_that_cannot_be_reached_is_told_where_no_program_sets_logging_up():
    """Workers are started by Spark: what they warn of stands in its logs at once."""
    program = (
        'import logging, kafka.spark\n'
        "logging.getLogger('kafka.net.node_connection').warning('cannot be reached')\n"
        "logging.getLogger('kafka.net.pool').warning('of no interest')\n"
    )
    done = subprocess.run([sys.executable, '-c', program], stderr=subprocess.PIPE, check=True)
    assert done.stderr.decode().strip() == 'cannot be reached'
