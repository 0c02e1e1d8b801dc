"""Both connectors on real brokers, case by case: the same rows, or the same refusal.

With KAFKA_SPARK_CASES=all those that are for the page alone, too (cases.py).
"""

from __future__ import annotations

import os

import pytest

from servers.cluster import Cluster
from servers.releases import chosen, problem
from test.run import NEWEST_SPARK
from test.spark import cases, topics
from test.spark.judging import judge, lacks
from test.spark.oracle import version

pytestmark = [pytest.mark.spark, pytest.mark.thorough]

OLD = [each for each in cases.ALL if each.group == 'formats']


def parameters(chosen_cases):
    """Return cases as parameters; those that are not usual are skipped, and say so."""
    runs_all = os.environ.get('KAFKA_SPARK_CASES') == 'all'
    reason = 'run for docs/spark_differential.rst, and by KAFKA_SPARK_CASES=all'
    return [
        pytest.param(
            each,
            id=str(each),
            marks=pytest.mark.skipif(not (runs_all or cases.is_usual(each)), reason=reason),
        )
        for each in chosen_cases
    ]


@pytest.fixture(autouse=True)
def newest():
    """The cases have what the JVM connector of one Spark does; those of others do otherwise."""
    if version() != NEWEST_SPARK:
        pytest.skip('the comparison is with the JVM connector of Spark %s' % NEWEST_SPARK)


@pytest.fixture(scope='session')
def formats():
    """A broker of 2.8.2, the last that writes the formats v0 and v1."""
    (release,) = chosen('2.8.2')
    reason = problem(release)
    if reason:
        pytest.skip(reason)
    with Cluster(release) as running:
        topics.make_formats(running)
        yield running


@pytest.mark.parametrize('case', parameters([e for e in cases.ALL if e not in OLD]))
def test_both_do_the_same(oracle, kinds, case, tmp_path):
    verdict = judge(oracle, kinds, case, tmp_path)
    assert verdict.is_good, verdict.why


@pytest.mark.parametrize('case', parameters(OLD))
def test_both_read_the_formats_of_old_brokers_alike(oracle, formats, case, tmp_path):
    verdict = judge(oracle, formats, case, tmp_path)
    assert verdict.is_good, verdict.why


def test_only_old_brokers_have_old_formats():
    lacking = [each for each in cases.ALL if lacks(each, chosen('4.4.0')[0])]
    assert lacking == OLD
    assert not any(lacks(each, chosen('2.8.2')[0]) for each in cases.ALL)
