"""What the loggers of the package show to programs that have not set up logging, and to others."""

from __future__ import annotations

import subprocess
import sys

import pytest

from test.sources import ROOT

PROGRAM = """
import logging
%s
log = logging.getLogger(%r)
log.warning('a warning')
log.error('an error')
"""
MODERN = 'from kafka import KafkaProducer'


def shown(first, name='kafka.producer.sender'):
    """Return what a program writes to standard error, by the logger of a name."""
    command = [sys.executable, '-c', PROGRAM % (first, name)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()


@pytest.mark.parametrize(
    'first, lines',
    [
        (MODERN, ['an error']),
        ('from kafka.evented.client import KafkaClient', ['an error']),
        ('from kafka import SimpleProducer', ['a warning', 'an error']),
        (MODERN + '\nlogging.basicConfig(format="%(message)s")', ['a warning', 'an error']),
        (MODERN + '\nlogging.getLogger("kafka").addHandler(logging.NullHandler())', []),
        (MODERN + '\nlogging.getLogger("kafka").propagate = False', ['an error']),
        (MODERN + '\nlogging.getLogger("kafka").setLevel(logging.CRITICAL)', []),
        ('logging.getLogger("kafka").addHandler(logging.NullHandler())\n' + MODERN, []),
    ],
)
def test_what_reaches_the_terminal(first, lines):
    assert shown(first) == lines


def test_programs_that_look_find_a_null_handler():
    found = (
        'from kafka import KafkaProducer\n'
        'import sys\n'
        'handlers = logging.getLogger("kafka").handlers\n'
        'assert [isinstance(each, logging.NullHandler) for each in handlers] == [True]\n'
        'sys.exit()'
    )
    assert shown(found) == []


@pytest.mark.parametrize(
    'first, lines',
    [
        ('import kafka.spark', ['a warning', 'an error']),
        (MODERN + '\nimport kafka.spark', ['a warning', 'an error']),
        (
            'import kafka.spark\nlogging.basicConfig(format="%(message)s")',
            ['a warning', 'an error'],
        ),
        ('logging.getLogger("kafka").addHandler(logging.NullHandler())\nimport kafka.spark', []),
        ('import kafka.spark\nlogging.getLogger("kafka").setLevel(logging.CRITICAL)', []),
    ],
)
def test_warnings_of_what_works_in_workers_of_spark_are_shown(first, lines):
    assert shown(first, 'kafka.spark.reading') == lines


def test_and_those_of_other_loggers_are_not():
    assert shown('import kafka.spark') == ['an error']
