"""What a consumer records into, from its options."""

from __future__ import annotations

from kafka import config as options
from kafka.consumer.figures import figures_of
from kafka.metrics.dict_reporter import DictReporter


def made(**given):
    config = options.resolve(options.CONSUMER, given)
    return figures_of(config, lambda: 5.0, lambda: 3, lambda: 12.5)


def test_groups_begin_with_the_prefix_and_metrics_have_the_client_id():
    figures = made(client_id='me', metric_group_prefix='mine')
    assert 'mine-coordinator-metrics' in figures.snapshot()
    assert figures.snapshot()['mine-coordinator-metrics']['assigned-partitions'] == 3
    assert {each.tags['client-id'] for each in figures.metrics.metrics} == {'me'}


def test_no_prefix_is_that_of_the_consumer():
    figures = made(metric_group_prefix='')
    assert 'consumer-metrics' in figures.snapshot()
    (reporter,) = figures.metrics._reporters
    assert all(each.startswith('kafka.consumer.') for each in reporter.snapshot())


def test_a_reporter_in_dicts_is_always_there():
    figures = made(client_id='me')
    reporters = figures.metrics._reporters
    (reporter,) = [each for each in reporters if isinstance(each, DictReporter)]
    whole = reporter.snapshot()['kafka.consumer.consumer-metrics.client-id=me']
    assert whole['metadata-age'] == 12.5
