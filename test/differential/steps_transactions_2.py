"""Transactions of version 2 (KIP-890): nothing is added beforehand, and each end raises the epoch.

Also AddPartitionsToTxn as brokers send it, for several transactions or to ask only.
"""

from __future__ import annotations

from typing import Any, Dict, List

from test.differential.script import Scenario, Step
from test.differential.steps_data import PRODUCE
from test.differential.steps_groups import stored
from test.differential.steps_transactions import (
    ADD_OFFSETS,
    ADD_PARTITIONS,
    END_TXN,
    INIT_PRODUCER_ID,
    OFFSET_FETCH,
    TXN_OFFSET_COMMIT,
    end_transaction,
    init,
    keep_ended,
    keep_producer,
    note_written,
    partitions_of,
    txn_commit,
    what_readers_see,
    who,
    write,
)


def _old(c: Any, answer: Any) -> None:
    c.values['old epoch'] = c.values['epoch']
    keep_ended(c, answer)


def _p(name: str, partition: int = 0, epoch: int = 0) -> Step:
    return Step(name, PRODUCE, lambda c: write(c, partition, epoch), keep=note_written)


def _end(name: str, committed: bool, **fields: Any) -> Step:
    return Step(name, END_TXN, lambda c: end_transaction(c, committed, **fields))


VERSION_2: List[Step] = [
    Step('init', INIT_PRODUCER_ID, init, keep=keep_producer),
    _end('commit nothing', True),
    _p('produce'),
    _p('produce more'),
    Step('commit offsets', TXN_OFFSET_COMMIT, txn_commit),
    *what_readers_see('while open'),
    _end('commit', True)._replace(keep=_old),
    Step('commit again', END_TXN, lambda c: end_transaction(c, True, producer_epoch=_old_epoch(c))),
    Step('abort then', END_TXN, lambda c: end_transaction(c, False, producer_epoch=_old_epoch(c))),
    *what_readers_see('after commit'),
    Step(
        'commit offsets by the old',
        TXN_OFFSET_COMMIT,
        lambda c: txn_commit(c, 50, producer_epoch=_old_epoch(c)),
    ),
    _p('produce by the old', 0, -1),
    _p('produce for abort', 1),
    _end('end by the old', False, producer_epoch=0),
    _end('abort', False)._replace(keep=keep_ended),
    *what_readers_see('after abort'),
    _end('abort nothing', False)._replace(keep=keep_ended),
    Step('add offsets', ADD_OFFSETS, lambda c: who(c, group_id=c.group())),
    Step('commit offsets for abort', TXN_OFFSET_COMMIT, lambda c: txn_commit(c, 99)),
    Step('stored but unstable', OFFSET_FETCH, lambda c: stored(c, require_stable=True)),
    Step('init while open', INIT_PRODUCER_ID, init, keep=keep_producer),
    Step('stored', OFFSET_FETCH, stored),
    _end('commit unknown', True, transactional_id='unknown'),
    _end('commit with wrong id', True, producer_id=123456),
    _end('commit with later epoch', True, producer_epoch=900),
]


def _old_epoch(c: Any) -> int:
    return int(c.values['old epoch'])


def _asked(c: Any, *parts: int, **fields: Any) -> Dict[str, Any]:
    """Return the request of a broker that asks whether partitions are in the transaction."""
    return partitions_of(c, *parts, verify_only=True, **fields)


def _two(c: Any) -> Dict[str, Any]:
    first = partitions_of(c, 0)
    second = partitions_of(c, 1, transactional_id='unknown')
    return {'transactions': [*first['transactions'], *second['transactions']]}


SEVERAL: List[Step] = [
    Step('init', INIT_PRODUCER_ID, init, keep=keep_producer),
    Step('ask before', ADD_PARTITIONS, lambda c: _asked(c, 0)),
    Step('add to two', ADD_PARTITIONS, _two),
    Step('ask', ADD_PARTITIONS, lambda c: _asked(c, 0)),
    Step('ask for two', ADD_PARTITIONS, lambda c: _asked(c, 0, 1)),
    Step('ask with later epoch', ADD_PARTITIONS, lambda c: _asked(c, 0, producer_epoch=9)),
    Step('ask for unknown', ADD_PARTITIONS, lambda c: _asked(c, 0, transactional_id='unknown')),
    Step('ask for unknown partition', ADD_PARTITIONS, lambda c: _asked(c, 7)),
    Step('no transactions', ADD_PARTITIONS, lambda c: {'transactions': []}),
    Step('commit', END_TXN, lambda c: end_transaction(c, True), version=4),
    Step('ask after', ADD_PARTITIONS, lambda c: _asked(c, 0)),
]

SCRIPT = [
    Scenario('transaction 2', (END_TXN,), VERSION_2, versions='5+'),
    Scenario('transactions of others', (ADD_PARTITIONS,), SEVERAL, versions='4+'),
]
