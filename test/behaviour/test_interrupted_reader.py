"""BoundedReader, interrupted at any point, returns each record at least once, in order."""

from __future__ import annotations

import itertools

import pytest

from kafka.consumer import arrow_batches
from kafka.consumer.bounded import fetcher as range_fetcher
from kafka.consumer.bounded import reader
from kafka.consumer.fetch import completed_fetch
from kafka.errors import KafkaTimeoutError
from test.consumer.written_logs import NOW, Stage, numbered
from test.raising import Interruption, Raiser, needs_points, no_raise_before_return, points

pytestmark = [pytest.mark.once, needs_points]

WITHIN = tuple(each.__file__ for each in (arrow_batches, completed_fetch, range_fetcher, reader))
RECORDS, MOST_POINTS = 60, 25


class Limit(Exception):
    """What a job runner raises when the time is over."""


class OutsideTurns(Raiser):
    """Raises in what the program calls, not in a turn of the loop, which signals do not enter."""

    def _meet(self, frame):
        above = frame
        while above is not None:
            if above.f_code.co_filename.endswith('simulation/loop.py'):
                return
            above = above.f_back
        super()._meet(frame)


@pytest.fixture
def stage():
    made = Stage()
    for start in range(0, RECORDS, 10):
        made.write(*numbered(10, start=start), at=NOW + 1000 * start)
    yield made
    made.close()


def read_some(made):
    return [record.value for record in made.read(7)]


def iterate(made):
    return [record.value for record in itertools.islice(made, 3)]


def read_arrow(batches):
    batch = next(batches, None)
    return [] if batch is None else batch.column('value').to_pylist()


def all_of(stage, begin, read, at, error):
    """Read everything and raise at a point of the second call; return values, and the Raiser."""
    source = begin(stage.reader('t', max_partition_fetch_bytes=300))
    found = read(source)
    raiser = OutsideTurns(at, error, WITHIN)
    try:
        with raiser:
            found += read(source)
    except error:
        pass
    more = read(source)
    while more:
        found += more
        more = read(source)
    return found, raiser


@no_raise_before_return
@pytest.mark.parametrize('error', [Limit, Interruption, MemoryError, KafkaTimeoutError])
@pytest.mark.parametrize(
    ('begin', 'read'),
    [
        (lambda made: made, read_some),
        (lambda made: made, iterate),
        (lambda made: made.arrow(['value'], max_batch_bytes=200), read_arrow),
    ],
    ids=['read', 'iterate', 'arrow'],
)
def test_an_exception_at_any_point_loses_no_record(stage, begin, read, error):
    wanted = numbered(RECORDS)
    found, counting = all_of(stage, begin, read, None, error)
    assert found == wanted
    for at in points(counting.count, MOST_POINTS):
        found, raiser = all_of(stage, begin, read, at, error)
        assert found == wanted, raiser.raised_at


def test_the_rest_of_a_list_of_iteration_outlasts_an_exception_in_read(stage):
    count = MOST_POINTS
    for at in itertools.chain([None], range(count)):
        made = stage.reader('t', max_partition_fetch_bytes=300)
        found, raiser = iterate(made), OutsideTurns(at, Interruption, WITHIN)
        try:
            with raiser:
                found += read_some(made)
        except Interruption:
            pass
        if at is None:
            assert 5 < raiser.count < count
        found += [record.value for record in made]
        assert found == numbered(RECORDS), raiser.raised_at
