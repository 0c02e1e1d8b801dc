"""What leaders ask of coordinators before a transactional batch is written."""

from __future__ import annotations

from typing import Tuple

import pytest

from kafka.testing.errors import (
    INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE,
    NONE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    TRANSACTION_ABORTABLE,
)
from kafka.testing.transactions.coordinator import transactions_of
from test.testing.data_requests import TOPIC, batch, driver, produce
from test.testing.drive import Driver


def begun(version: str = '4.3') -> Tuple[Driver, int]:
    """Return a cluster and a producer id, both ready for a transaction."""
    cluster = driver(version)
    found = transactions_of(cluster.brokers[0]).init('t', 60000, None)
    assert found.error_code == NONE
    return cluster, found.producer_id


def write(
    cluster: Driver, producer_id: int, version: int, sequence: int = 0, epoch: int = 0
) -> int:
    data = batch(
        b'a',
        transactional=True,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    return produce(cluster, data, version, transactional_id='t').error_code


@pytest.mark.parametrize(
    ('release', 'version', 'error'),
    [('3.5', 9, NONE), ('3.9', 10, INVALID_TXN_STATE), ('4.3', 11, TRANSACTION_ABORTABLE)],
)
def test_a_partition_that_was_not_added(release: str, version: int, error: int) -> None:
    cluster, producer_id = begun(release)
    assert write(cluster, producer_id, version) == error


def test_a_partition_that_was_added() -> None:
    cluster, producer_id = begun()
    transactions_of(cluster.brokers[0]).add('t', producer_id, 0, [(TOPIC, 0)])
    assert write(cluster, producer_id, 11) == NONE


def test_version_12_adds_the_partition() -> None:
    cluster, producer_id = begun()
    assert write(cluster, producer_id, 12) == NONE
    assert transactions_of(cluster.brokers[0]).has_partition('t', TOPIC, 0)
    assert write(cluster, producer_id, 12, 1) == NONE


def test_a_producer_that_nobody_knows_begins_at_0_from_version_12_on() -> None:
    cluster, producer_id = begun()
    assert write(cluster, producer_id, 12, 5) == OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_late_batch_of_the_transaction_before() -> None:
    cluster, producer_id = begun()
    transactions = transactions_of(cluster.brokers[0])
    write(cluster, producer_id, 12)
    assert transactions.end('t', producer_id, 0, True).producer_epoch == 1
    cluster.advance(1)
    assert write(cluster, producer_id, 12, 1) == INVALID_PRODUCER_EPOCH
    assert write(cluster, producer_id, 12, 0, epoch=1) == NONE
