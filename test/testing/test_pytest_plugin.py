"""The fixture and the marker, in a run of pytest of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@pytest.fixture
def outcome(tmp_path):
    """Run a test module with the plugin; returns what pytest says."""

    def run(source):
        (tmp_path / 'test_it.py').write_text(textwrap.dedent(source), encoding='utf-8')
        ended = subprocess.run(
            [
                *(sys.executable, '-m', 'pytest', '-p', 'kafka.testing.pytest_plugin'),
                *('--strict-markers', '-p', 'no:cacheprovider', '-p', 'no:randomly', str(tmp_path)),
            ],
            cwd=str(tmp_path),
            env={**os.environ, 'PYTHONPATH': ROOT},
            capture_output=True,
            timeout=60,
            text=True,
        )
        return ended.stdout

    return run


def test_a_test_gets_a_cluster_of_its_own(outcome):
    said = outcome(
        """
        from kafka import KafkaClient

        def check(cluster):
            client = KafkaClient(cluster.bootstrap)
            assert not client.has_metadata_for_topic('t')
            cluster.create_topic('t')
            client.close()

        def test_one(kafka_cluster):
            check(kafka_cluster)

        def test_two(kafka_cluster):
            check(kafka_cluster)
        """
    )
    assert '2 passed' in said, said


def test_marks_say_what_it_is_and_the_nearest_decides(outcome):
    said = outcome(
        """
        import pytest

        pytestmark = pytest.mark.kafka(version='2.8', topics={'t': 2})

        def test_module(kafka_cluster):
            assert kafka_cluster.state.release.name == '2.8'
            assert kafka_cluster.nodes == [0]

        @pytest.mark.kafka(version='0.9', brokers=3)
        def test_function(kafka_cluster):
            assert kafka_cluster.state.release.name == '0.9'
            assert kafka_cluster.nodes == [0, 1, 2]
            assert kafka_cluster.leader('t', 1) in (0, 1, 2)
        """
    )
    assert '2 passed' in said, said


def test_a_mark_may_secure_it(outcome):
    said = outcome(
        """
        import pytest

        @pytest.mark.kafka(sasl={'alice': 'hunter2'}, tls=True, authorizer=True)
        def test_it(kafka_cluster):
            assert kafka_cluster.security_protocol == 'SASL_SSL'
            kafka_cluster.allow('alice', 'Read', topic='t')
        """
    )
    assert '1 passed' in said, said


@pytest.mark.parametrize(
    'mark, reason',
    [
        ("version='1.9'", "unknown version '1.9'"),
        ('nodes=3', 'nodes'),
        ("'2.8'", "the marker kafka takes keywords: kafka(version='2.8')"),
    ],
)
def test_a_wrong_mark_is_told(outcome, mark, reason):
    said = outcome(
        """
        import pytest

        @pytest.mark.kafka(%s)
        def test_it(kafka_cluster):
            pass
        """
        % mark
    )
    assert '1 error' in said and reason in said, said


def test_what_fails_inside_the_brokers_fails_the_test(outcome):
    said = outcome(
        """
        import pytest
        from kafka import KafkaClient

        def test_it(kafka_cluster):
            def check(call):
                assert call.request.topics == ['what the test expects']
            kafka_cluster.control('Metadata', check)
            with pytest.raises(Exception):
                KafkaClient(kafka_cluster.bootstrap)
        """
    )
    assert '1 passed, 1 error' in said and 'what the test expects' in said, said


def test_it_is_found_by_its_entry_point():
    with open(os.path.join(ROOT, 'setup.py'), encoding='utf-8') as file:
        assert "'pytest11': ['kafka.testing.pytest_plugin = " in file.read()


def test_it_loads_nothing_before_it_is_used(outcome):
    said = outcome(
        """
        import sys

        def test_it():
            assert not [name for name in sys.modules if name.startswith('kafka.protocol')]
        """
    )
    assert '1 passed' in said, said
