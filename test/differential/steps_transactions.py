"""Idempotent and transactional producing.

Steps that do not walk stay at the last versions before transactions of version 2 (KIP-890).
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from test.differential.script import Scenario, Step, one
from test.differential.steps_data import PRODUCE, batch, fetch, produce
from test.differential.steps_fetch import offsets
from test.differential.steps_groups import stored

FETCH = 1
LIST_OFFSETS = 2
OFFSET_FETCH = 9
INIT_PRODUCER_ID = 22
ADD_PARTITIONS = 24
ADD_OFFSETS = 25
END_TXN = 26
WRITE_MARKERS = 27
TXN_OFFSET_COMMIT = 28
DESCRIBE_PRODUCERS = 61
DESCRIBE_TRANSACTIONS = 65
LIST_TRANSACTIONS = 66

UNKNOWN_ID = b'\x07' * 16


def init(c: Any, timeout_ms: int = 60000, **fields: Any) -> Dict[str, Any]:
    """Return an InitProducerId request for the case's transactional id."""
    asked = {'transactional_id': c.transaction(), 'transaction_timeout_ms': timeout_ms}
    return dict(asked, **fields)


def keep_producer(c: Any, answer: Any) -> None:
    """Remember the producer id and epoch that a case was given."""
    c.values['id'] = answer.producer_id
    c.values['epoch'] = answer.producer_epoch
    c.values['sequence'] = 0


def who(c: Any, **fields: Any) -> Dict[str, Any]:
    """Return the fields that say whose transaction it is."""
    asked = {
        'transactional_id': c.transaction(),
        'producer_id': c.values['id'],
        'producer_epoch': c.values['epoch'],
    }
    return dict(asked, **fields)


def partitions_of(
    c: Any, *parts: int, topic: Optional[str] = None, verify_only: bool = False, **fields: Any
) -> Dict[str, Any]:
    """Return an AddPartitionsToTxn request, in the layouts of all versions."""
    topics = [{'name': c.topic() if topic is None else topic, 'partitions': list(parts)}]
    identity = who(c, **fields)
    asked = {'v3_and_below_' + name: value for name, value in identity.items()}
    whole = dict(identity, topics=topics, verify_only=verify_only)
    return dict(asked, v3_and_below_topics=topics, transactions=[whole])


def write(c: Any, partition: int = 0, epoch: int = 0) -> Dict[str, Any]:
    """Return a Produce request of the transaction."""
    sequence = c.values['sequence']
    records = batch(
        c,
        producer_id=c.values['id'],
        producer_epoch=c.values['epoch'] + epoch,
        base_sequence=sequence,
        transactional=True,
    )
    return produce(c, records, partition=partition, acks=-1, transactional_id=c.transaction())


def note_written(c: Any, answer: Any) -> None:
    """Count the sequence on if something was written."""
    if not answer.responses[0].partition_responses[0].error_code:
        c.values['sequence'] += 2


def end_transaction(c: Any, committed: bool, **fields: Any) -> Dict[str, Any]:
    """Return an EndTxn request."""
    return dict(who(c, committed=committed), **fields)


def keep_ended(c: Any, answer: Any) -> None:
    """Remember the producer id and epoch for the next transaction, if told."""
    if answer.producer_id >= 0:
        keep_producer(c, answer)


def txn_commit(c: Any, offset: int = 11, **fields: Any) -> Dict[str, Any]:
    """Return a TxnOffsetCommit request."""
    part = {
        'partition_index': 0,
        'committed_offset': offset,
        'committed_metadata': 'in a transaction',
        'committed_leader_epoch': 0,
    }
    topics = [{'name': c.topic(), 'topic_id': c.topic_id(c.topic()), 'partitions': [part]}]
    return dict(who(c, group_id=c.group(), topics=topics), **fields)


COMMITTED: Dict[str, Any] = {'isolation_level': 1}


def what_readers_see(word: str) -> List[Step]:
    """Return the steps that show what readers see."""
    return [
        Step('fetch ' + word, FETCH, fetch),
        Step('fetch committed ' + word, FETCH, lambda c: fetch(c, **COMMITTED)),
        Step('latest committed ' + word, LIST_OFFSETS, lambda c: offsets(c, -1, **COMMITTED)),
        Step('stored ' + word, OFFSET_FETCH, stored),
        Step('producers ' + word, DESCRIBE_PRODUCERS, _producers),
        Step('transaction ' + word, DESCRIBE_TRANSACTIONS, _transactions),
    ]


def _producers(c: Any) -> Dict[str, Any]:
    return {'topics': [{'name': c.topic(), 'partition_indexes': [0, 1, 7]}]}


def _transactions(c: Any) -> Dict[str, Any]:
    return {'transactional_ids': [c.transaction()]}


def _add(c: Any) -> Dict[str, Any]:
    return partitions_of(c, 0, 1)


def _steps() -> List[Step]:
    """Return a transaction that commits, one that aborts, and what is wrong in between."""
    end_kept: Dict[str, Any] = {'keep': keep_ended}
    return [
        Step('init', INIT_PRODUCER_ID, init, keep=keep_producer),
        Step('end nothing', END_TXN, lambda c: end_transaction(c, True)),
        Step('abort nothing', END_TXN, lambda c: end_transaction(c, False), **end_kept),
        Step('produce early', PRODUCE, write, keep=note_written, version=11),
        Step('add', ADD_PARTITIONS, _add, version=3),
        Step('add again', ADD_PARTITIONS, _add, version=3),
        Step('add unknown partition', ADD_PARTITIONS, lambda c: partitions_of(c, 0, 7), version=3),
        Step(
            'add unknown topic',
            ADD_PARTITIONS,
            lambda c: partitions_of(c, 0, topic='unknown'),
            version=3,
        ),
        Step('produce', PRODUCE, write, keep=note_written, version=11),
        Step('produce more', PRODUCE, write, keep=note_written, version=11),
        Step('add offsets', ADD_OFFSETS, lambda c: who(c, group_id=c.group())),
        Step('commit offsets', TXN_OFFSET_COMMIT, txn_commit, version=4),
        Step(
            'stored but unstable',
            OFFSET_FETCH,
            lambda c: stored(c, require_stable=True),
            when=lambda c: c.version >= 7,
        ),
        *what_readers_see('while open'),
        Step('commit', END_TXN, lambda c: end_transaction(c, True), version=4, **end_kept),
        Step('commit again', END_TXN, lambda c: end_transaction(c, True), version=4),
        Step('abort then', END_TXN, lambda c: end_transaction(c, False), version=4),
        *what_readers_see('after commit'),
        Step('add for abort', ADD_PARTITIONS, _add, version=3),
        Step('produce for abort', PRODUCE, write, keep=note_written, version=11),
        Step('add offsets for abort', ADD_OFFSETS, lambda c: who(c, group_id=c.group())),
        Step('commit offsets for abort', TXN_OFFSET_COMMIT, lambda c: txn_commit(c, 99), version=4),
        Step('abort', END_TXN, lambda c: end_transaction(c, False), version=4, **end_kept),
        Step('abort again', END_TXN, lambda c: end_transaction(c, False), version=4),
        *what_readers_see('after abort'),
        *_wrong(),
        Step('init again', INIT_PRODUCER_ID, init),
        Step('end by the old', END_TXN, lambda c: end_transaction(c, True), version=4),
        Step('add by the old', ADD_PARTITIONS, _add, version=3),
        Step('produce by the old', PRODUCE, write, version=11),
        # Last: a marker of an older epoch is refused after it, for ever.
        Step('produce in next epoch', PRODUCE, lambda c: write(c, 1, 1), version=11),
    ]


def _wrong() -> List[Step]:
    """Return requests of producers that are not who they say."""
    ids: Dict[str, Any] = {'producer_id': 123456}
    unknown: Dict[str, Any] = {'transactional_id': 'unknown'}
    return [
        Step('add wrong id', ADD_PARTITIONS, lambda c: partitions_of(c, 0, **ids), version=3),
        Step(
            'add wrong epoch',
            ADD_PARTITIONS,
            lambda c: partitions_of(c, 0, producer_epoch=c.values['epoch'] + 1),
            version=3,
        ),
        Step('add unknown', ADD_PARTITIONS, lambda c: partitions_of(c, 0, **unknown), version=3),
        Step(
            'add empty',
            ADD_PARTITIONS,
            lambda c: partitions_of(c, 0, transactional_id=''),
            version=3,
        ),
        Step('offsets wrong id', ADD_OFFSETS, lambda c: who(c, group_id=c.group(), **ids)),
        Step('offsets unknown', ADD_OFFSETS, lambda c: who(c, group_id=c.group(), **unknown)),
        Step('offsets no group', ADD_OFFSETS, lambda c: who(c, group_id='')),
        Step('end wrong id', END_TXN, lambda c: end_transaction(c, True, **ids), version=4),
        Step('end unknown', END_TXN, lambda c: end_transaction(c, True, **unknown), version=4),
        Step(
            'end wrong epoch',
            END_TXN,
            lambda c: end_transaction(c, True, producer_epoch=c.values['epoch'] + 1),
            version=4,
        ),
        Step(
            'commit offsets in generation 5',
            TXN_OFFSET_COMMIT,
            lambda c: txn_commit(c, generation_id_or_member_epoch=5, member_id='m'),
            version=3,
        ),
        Step('commit offsets no group', TXN_OFFSET_COMMIT, lambda c: txn_commit(c, group_id='')),
        Step('commit offsets wrong id', TXN_OFFSET_COMMIT, lambda c: txn_commit(c, **ids)),
    ]


INIT_SCRIPT = [
    Scenario(
        'init',
        (INIT_PRODUCER_ID,),
        [
            Step('idempotent', INIT_PRODUCER_ID, lambda c: init(c, transactional_id=None)),
            Step('empty', INIT_PRODUCER_ID, lambda c: init(c, transactional_id='')),
            Step('first', INIT_PRODUCER_ID, init, keep=keep_producer),
            Step('second', INIT_PRODUCER_ID, init),
            Step('no time', INIT_PRODUCER_ID, lambda c: init(c, 0)),
            Step('negative time', INIT_PRODUCER_ID, lambda c: init(c, -1)),
            Step('too long', INIT_PRODUCER_ID, lambda c: init(c, 100_000_000)),
            Step(
                'no time idempotent', INIT_PRODUCER_ID, lambda c: init(c, 0, transactional_id=None)
            ),
            Step(
                'with an old epoch',
                INIT_PRODUCER_ID,
                lambda c: init(c, producer_id=c.values['id'], producer_epoch=c.values['epoch']),
                when=lambda c: c.version >= 3,
            ),
            Step(
                'with a current epoch',
                INIT_PRODUCER_ID,
                lambda c: init(c, producer_id=c.values['id'], producer_epoch=c.values['epoch'] + 1),
                when=lambda c: c.version >= 3,
            ),
            Step(
                'with a later epoch',
                INIT_PRODUCER_ID,
                lambda c: init(c, producer_id=c.values['id'], producer_epoch=500),
                when=lambda c: c.version >= 3,
            ),
            Step(
                'with another id',
                INIT_PRODUCER_ID,
                lambda c: init(c, producer_id=123456, producer_epoch=0),
                when=lambda c: c.version >= 3,
            ),
            Step(
                'with an id alone',
                INIT_PRODUCER_ID,
                lambda c: init(c, producer_id=5),
                when=lambda c: c.version >= 3,
            ),
            Step(
                'two phases',
                INIT_PRODUCER_ID,
                lambda c: init(c, enable2_pc=True),
                when=lambda c: c.version >= 6,
            ),
        ],
    )
]


def _markers(c: Any, committed: bool, *parts: int) -> Dict[str, Any]:
    topics = [{'name': c.topic(), 'partition_indexes': list(parts)}]
    marker = {
        'producer_id': c.values['id'],
        'producer_epoch': c.values['epoch'],
        'transaction_result': committed,
        'topics': topics,
        'coordinator_epoch': 0,
    }
    return {'markers': [marker]}


MARKERS_SCRIPT = [
    Scenario(
        'markers',
        (WRITE_MARKERS,),
        [
            Step('init', INIT_PRODUCER_ID, init, keep=keep_producer, version=1),
            Step('commit nothing', WRITE_MARKERS, lambda c: _markers(c, True, 0)),
            Step('abort nothing', WRITE_MARKERS, lambda c: _markers(c, False, 0, 7)),
            Step('no markers', WRITE_MARKERS, lambda c: {'markers': []}),
            Step('fetch', FETCH, fetch),
        ],
    )
]

LISTS_SCRIPT = [
    Scenario(
        'list transactions',
        (LIST_TRANSACTIONS,),
        [
            Step('init', INIT_PRODUCER_ID, init, keep=keep_producer, version=4),
            Step(
                'of the producer',
                LIST_TRANSACTIONS,
                lambda c: {'state_filters': [], 'producer_id_filters': [c.values['id']]},
            ),
            Step('of a state', LIST_TRANSACTIONS, lambda c: {'state_filters': ['Ongoing', 'No']}),
            Step(
                'long ones',
                LIST_TRANSACTIONS,
                lambda c: {
                    'producer_id_filters': [c.values['id']],
                    'duration_filter': 10_000_000,
                },
            ),
            Step(
                'by pattern',
                LIST_TRANSACTIONS,
                lambda c: {'transactional_id_pattern': c.label + '.*'},
                when=lambda c: c.version >= 2,
            ),
            Step(
                'bad pattern',
                LIST_TRANSACTIONS,
                lambda c: {'transactional_id_pattern': '(a'},
                when=lambda c: c.version >= 2,
            ),
        ],
    ),
    one(
        'describe unknown transactions',
        DESCRIBE_TRANSACTIONS,
        lambda c: {'transactional_ids': ['unknown', '']},
    ),
    one(
        'describe producers',
        DESCRIBE_PRODUCERS,
        lambda c: {'topics': [{'name': 'unknown', 'partition_indexes': [0]}]},
    ),
]

SCRIPT = [
    *INIT_SCRIPT,
    Scenario(
        'transaction',
        (ADD_PARTITIONS, ADD_OFFSETS, END_TXN, TXN_OFFSET_COMMIT),
        _steps(),
    ),
    *MARKERS_SCRIPT,
    *LISTS_SCRIPT,
]
