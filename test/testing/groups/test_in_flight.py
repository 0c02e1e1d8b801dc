"""States of records that were acquired, and rows of them that are split."""

from __future__ import annotations

import pytest

from kafka.testing.groups.in_flight import Delivery, InFlight, RecordState


def test_each_acquisition_is_counted():
    delivery = Delivery()
    delivery.acquire('a', 5.0)
    delivery.end(RecordState.AVAILABLE)
    delivery.acquire('b', 6.0)
    assert (delivery.count, delivery.member_id, delivery.until) == (2, 'b', 6.0)


@pytest.mark.parametrize('state', [RecordState.ACKNOWLEDGED, RecordState.ARCHIVED])
def test_what_is_dealt_with_stays_so(state):
    delivery = Delivery()
    delivery.acquire('a', 5.0)
    delivery.end(state)
    with pytest.raises(ValueError, match='%s never is ACQUIRED' % state.name):
        delivery.acquire('b', 6.0)


def test_records_of_a_row_that_is_split_go_their_own_ways():
    flight = InFlight(3, 5, Delivery(RecordState.ACQUIRED, 2, 'a', 1.0))
    flight.split()[4].end(RecordState.ACKNOWLEDGED)
    assert [(first, last, d.state.name, d.count) for first, last, d in flight.deliveries()] == [
        (3, 3, 'ACQUIRED', 2),
        (4, 4, 'ACKNOWLEDGED', 2),
        (5, 5, 'ACQUIRED', 2),
    ]


def test_a_row_that_was_split_is_not_split_again():
    flight = InFlight(0, 1, Delivery())
    flight.split()[0].acquire('a', 1.0)
    assert flight.split()[0].member_id == 'a'
