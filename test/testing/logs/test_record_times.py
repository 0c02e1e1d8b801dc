"""The first record of a time."""

from __future__ import annotations

import pytest

from kafka.record.default_records import encode_batch
from kafka.testing.logs.partition_log import Batch, PartitionLog
from kafka.testing.logs.record_times import first_record_at


def log():
    made = PartitionLog()
    for times in ((10, 30, 20), (40,)):
        data = encode_batch([(at, None, b'x', ()) for at in times])
        made.append(Batch(0, len(times) - 1, max(times), 2, data), 0)
    return made


@pytest.mark.parametrize(
    ('timestamp', 'found'),
    [(0, (0, 10)), (11, (1, 30)), (30, (1, 30)), (31, (3, 40)), (41, None)],
)
def test_the_first_record_that_is_not_older_is_found(timestamp, found):
    assert first_record_at(log(), timestamp, 4) == found


def test_records_behind_the_end_are_not_looked_at():
    assert first_record_at(log(), 31, 3) is None


def test_records_before_the_start_are_not_looked_at():
    made = log()
    made.delete_before(2)
    assert first_record_at(made, 0, 4) == (2, 20)
