"""The table of Produce errors, row by row as the protocol's documents have it."""

from __future__ import annotations

import pytest

from kafka import errors
from kafka.errors import KafkaError
from kafka.producer.produce_errors import (
    ROWS,
    ProduceAction,
    ProduceReaction,
    ProducerKind,
    lost_verdict,
    plain_verdict,
    reaction_to,
    verdict_of,
)
from kafka.protocol.produce import BatchIndexAndErrorMessage, PartitionProduceResponse

# Code -> (plain, idempotent, transactional), written down from the documents by itself.
EXPECTED = """
0    done     done      done
2    retry    retry     retry
3    refresh  refresh   refresh
5    refresh  refresh   refresh
6    refresh  refresh   refresh
7    retry    retry     retry
10   split    split     split
17   fail     fail      abortable
18   fail     fail      abortable
19   retry    retry     retry
20   retry    retry     retry
21   fail     fail      abortable
29   fail     fail      abortable
31   fail     fatal     fatal
32   fail     fail      abortable
35   fail     fatal     fatal
43   fail     fail      abortable
45   fail     sequence  sequence
46   done     done      done
47   fail     sequence  sequence
48   fail     fail      abortable
49   fail     fatal     fatal
51   retry    retry     retry
53   fail     fatal     fatal
56   refresh  refresh   refresh
59   fail     sequence  sequence
76   fail     fail      abortable
87   fail     fail      abortable
90   fail     fatal     fatal
100  refresh  refresh   refresh
120  fail     fail      abortable
"""
TABLE = [line.split() for line in EXPECTED.strip().splitlines()]


def answer(code, **fields):
    """Return the answer about one partition."""
    return PartitionProduceResponse(
        index=0, error_code=code, base_offset=fields.pop('offset', -1), **fields
    )


@pytest.mark.parametrize(('code', 'plain', 'idempotent', 'transactional'), TABLE)
def test_row(code, plain, idempotent, transactional):
    kinds = (ProducerKind.PLAIN, ProducerKind.IDEMPOTENT, ProducerKind.TRANSACTIONAL)
    said = [reaction_to(kind, int(code)).value for kind in kinds]
    assert said == [plain, idempotent, transactional]


def test_table_has_no_row_that_nobody_expects():
    assert {int(row[0]) for row in TABLE} == set(ROWS)


@pytest.mark.parametrize('code', sorted(set(errors.kafka_errors) - set(ROWS)))
def test_other_codes_follow_their_flags(code):
    flags = errors.kafka_errors[code]
    expected = ProduceReaction.FAIL
    if flags.retriable:
        expected = ProduceReaction.REFRESH if flags.refresh_metadata else ProduceReaction.RETRY
    assert reaction_to(ProducerKind.IDEMPOTENT, code) is expected
    if expected is ProduceReaction.FAIL:
        assert reaction_to(ProducerKind.TRANSACTIONAL, code) is ProduceReaction.ABORTABLE


def test_code_newer_than_the_table_surfaces():
    assert reaction_to(ProducerKind.IDEMPOTENT, 9999) is ProduceReaction.FAIL
    verdict = plain_verdict(answer(9999), 't-0', 1)
    assert verdict.action is ProduceAction.FAIL
    assert verdict.error.errno == 9999


def test_done_carries_the_offset():
    assert plain_verdict(answer(0, offset=7), 't-0', 2)[:2] == (ProduceAction.DONE, None)
    assert plain_verdict(answer(0, offset=7), 't-0', 2).base_offset == 7
    assert plain_verdict(answer(46), 't-0', 2).base_offset == -1


def test_retry_says_whether_metadata_is_stale():
    assert plain_verdict(answer(6), 't-0', 1).refresh_metadata
    assert not plain_verdict(answer(19), 't-0', 1).refresh_metadata
    assert isinstance(plain_verdict(answer(6), 't-0', 1).error, errors.NotLeaderForPartitionError)


def test_too_large_is_split_unless_one_record():
    assert plain_verdict(answer(10), 't-0', 2).action is ProduceAction.SPLIT
    assert plain_verdict(answer(10), 't-0', 1).action is ProduceAction.FAIL


def test_lost_is_tried_again_and_metadata_refreshed():
    error = KafkaError('gone')
    assert lost_verdict(error)[:3] == (ProduceAction.RETRY, error, True)


def test_error_names_the_place_and_the_brokers_reason():
    verdict = plain_verdict(answer(29, error_message='no right'), 'orders-3', 1)
    assert type(verdict.error) is errors.TopicAuthorizationFailedError
    assert 'orders-3: no right' in str(verdict.error)


def test_broker_text_is_bounded():
    verdict = plain_verdict(answer(29, error_message='x' * 100000), 't-0', 1)
    assert len(str(verdict.error)) < 1000


def test_guilty_records_and_their_mates_are_told_apart():
    guilty = [BatchIndexAndErrorMessage(batch_index=1, batch_index_error_message='no key')]
    verdict = plain_verdict(answer(87, record_errors=guilty), 't-0', 3)
    assert verdict.action is ProduceAction.FAIL
    assert set(verdict.record_errors) == {1}
    assert type(verdict.record_errors[1]) is errors.InvalidRecordError
    assert 'no key' in str(verdict.record_errors[1])
    assert type(verdict.error) is KafkaError
    assert '1 other record of its batch' in str(verdict.error)


def test_row_that_needs_sequences_decides_nothing():
    with pytest.raises(ValueError, match='45'):
        verdict_of(ProduceReaction.SEQUENCE, answer(45), 't-0', 1)
