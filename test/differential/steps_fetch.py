"""Reading records: Fetch, ListOffsets, OffsetForLeaderEpoch, DeleteRecords."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from test.differential.script import REFUSED_ABOVE, REFUSED_BELOW, Scenario, Step, one
from test.differential.steps_data import FETCH, PRODUCE, batch, fetch, produce

LIST_OFFSETS = 2
DELETE_RECORDS = 21
OFFSET_FOR_LEADER_EPOCH = 23


def _fill(c: Any) -> Dict[str, Any]:
    """Return a Produce request of one record, in the newest version."""
    c.values['count'] = c.values.get('count', 0) + 1
    value = b'record %d' % c.values['count']
    return produce(c, batch(c, values=[value, b'and another']), acks=-1)


FILL = [Step('fill %d' % n, PRODUCE, _fill) for n in (1, 2, 3)]


def _session(c: Any, epoch: int, offset: int = 0, **fields: Any) -> Dict[str, Any]:
    return fetch(c, offset, session_id=c.values.get('session', 0), session_epoch=epoch, **fields)


def _keep_session(c: Any, answer: Any) -> None:
    c.values['session'] = answer.session_id


def _with_sessions(c: Any) -> bool:
    return bool(c.version >= 7)


def _with_epochs(c: Any) -> bool:
    return bool(c.version >= 9)


def _when(step: Step, when: Callable[[Any], bool]) -> Step:
    return step._replace(when=when)


def fetching(name: str, *arguments: Any, **fields: Any) -> Step:
    """Return a step that fetches."""
    return Step(name, FETCH, lambda c: fetch(c, *arguments, **fields))


def _s(name: str, epoch: int, *arguments: Any, **fields: Any) -> Step:
    """Return a step of a fetch session."""
    step = Step(name, FETCH, lambda c: _session(c, epoch, *arguments, **fields))
    return step._replace(when=_with_sessions, keep=_keep_session)


def _forget(c: Any) -> Dict[str, Any]:
    topic_id = c.topic_id(c.topic())
    gone = [{'topic': c.topic(), 'topic_id': topic_id, 'partitions': [0]}]
    return dict(_session(c, 4), topics=[], forgotten_topics_data=gone)


def _stranger(c: Any, epoch: int) -> Dict[str, Any]:
    return dict(fetch(c), session_id=123456789, session_epoch=epoch)


FETCH_SCRIPT = [
    Scenario(
        'fetch',
        (FETCH,),
        [
            *FILL,
            fetching('all'),
            fetching('inside a batch', 1),
            fetching('second batch', 2),
            fetching('at the end', 6),
            fetching('behind the end', 7),
            fetching('negative offset', -1),
            fetching('very negative offset', -5),
            fetching('empty partition', 0, 1),
            fetching('unknown partition', 0, 2),
            fetching('negative partition', 0, -1),
            fetching('unknown topic', topic='unknown'),
            fetching('few bytes', partition_max_bytes=100),
            fetching('too few bytes', partition_max_bytes=10),
            fetching('no bytes', partition_max_bytes=0),
            fetching('few bytes in all', max_bytes=100),
            fetching('no bytes in all', max_bytes=0),
            fetching('wait for more', 4, min_bytes=100000, max_wait_ms=100),
            fetching('wait not', 6, min_bytes=1, max_wait_ms=0),
            fetching('read committed', isolation_level=1),
            _when(fetching('isolation 5', isolation_level=5), lambda c: c.version >= 4),
            _when(fetching('epoch 0', current_leader_epoch=0), _with_epochs),
            _when(fetching('later epoch', current_leader_epoch=5), _with_epochs),
            _when(fetching('fetched epoch 0', last_fetched_epoch=0), lambda c: c.version >= 12),
            _when(fetching('fetched epoch 5', last_fetched_epoch=5), lambda c: c.version >= 12),
            _when(fetching('rack', rack_id='r1'), lambda c: c.version >= 11),
            fetching('unknown replica', replica_id=-3),
            Step('no topics', FETCH, lambda c: dict(fetch(c), topics=[])),
            Step('topic twice', FETCH, lambda c: _twice(fetch(c))),
        ],
    ),
    Scenario(
        'fetch session',
        (FETCH,),
        [
            *FILL[:1],
            _s('new', 0),
            _s('nothing new', 1, 2),
            _when(
                Step('unchanged', FETCH, lambda c: dict(_session(c, 2), topics=[])), _with_sessions
            ),
            *FILL[1:2],
            _when(
                Step('changed', FETCH, lambda c: dict(_session(c, 3), topics=[])), _with_sessions
            ),
            _when(Step('forget', FETCH, _forget), _with_sessions),
            _when(Step('wrong epoch', FETCH, lambda c: _session(c, 9)), _with_sessions),
            _when(Step('unknown id', FETCH, lambda c: _stranger(c, 1)), _with_sessions),
            _when(Step('unknown id, new', FETCH, lambda c: _stranger(c, 0)), _with_sessions),
            _when(Step('close', FETCH, lambda c: _session(c, -1)), _with_sessions),
            _when(Step('after close', FETCH, lambda c: _session(c, 5)), _with_sessions),
            _when(Step('negative epoch', FETCH, lambda c: _stranger(c, -3)), _with_sessions),
        ],
        versions='7+',
    ),
    one('fetch', FETCH, fetch, versions=REFUSED_ABOVE),
    one('fetch', FETCH, fetch, versions=REFUSED_BELOW),
]


def _twice(values: Dict[str, Any]) -> Dict[str, Any]:
    return dict(values, topics=values['topics'] * 2)


def offsets(
    c: Any, timestamp: int, partition: int = 0, topic: Optional[str] = None, **fields: Any
) -> Dict[str, Any]:
    """Return a ListOffsets request for one partition; fields of partition or request by name."""
    part = {'partition_index': partition, 'timestamp': timestamp}
    for field in ('current_leader_epoch', 'max_num_offsets'):
        if field in fields:
            part[field] = fields.pop(field)
    topics = [{'name': c.topic() if topic is None else topic, 'partitions': [part]}]
    return dict({'replica_id': -1, 'topics': topics}, **fields)


def _o(name: str, *arguments: Any, **fields: Any) -> Step:
    return Step(name, LIST_OFFSETS, lambda c: offsets(c, *arguments, **fields))


def _at_base(name: str, distance_ms: int) -> Step:
    return Step(name, LIST_OFFSETS, lambda c: offsets(c, c.now_ms + distance_ms))


LIST_OFFSETS_SCRIPT = [
    Scenario(
        'list offsets',
        (LIST_OFFSETS,),
        [
            *FILL,
            *(_o('time %d' % time, time) for time in (-1, -2, -3, -4, -5, -6, -7, 0)),
            _at_base('first time', 0),
            _at_base('second time', 1),
            _at_base('behind all times', 2),
            _at_base('far behind all times', 36_000_000),
            _o('empty partition', -1, 1),
            _o('empty partition by time', 0, 1),
            _o('unknown partition', -1, 2),
            _o('unknown topic', -1, 0, 'unknown'),
            _o('no offsets', -1, max_num_offsets=0),
            _o('ten offsets', -1, max_num_offsets=10),
            _o('read committed', -1, isolation_level=1),
            _when(_o('isolation 5', -1, isolation_level=5), lambda c: c.version >= 2),
            _when(_o('epoch 0', -1, current_leader_epoch=0), lambda c: c.version >= 4),
            _when(_o('later epoch', -1, current_leader_epoch=5), lambda c: c.version >= 4),
            _o('debugging replica', -1, replica_id=-2),
            _o('some replica', -1, replica_id=5),
            Step('partition twice', LIST_OFFSETS, lambda c: _twice(offsets(c, -1))),
        ],
    ),
    one('list offsets', LIST_OFFSETS, lambda c: offsets(c, -1), versions=REFUSED_ABOVE),
]


def _epoch(
    c: Any, epoch: int, partition: int = 0, topic: Optional[str] = None, current: int = -1
) -> Dict[str, Any]:
    part = {'partition': partition, 'leader_epoch': epoch, 'current_leader_epoch': current}
    name = c.topic() if topic is None else topic
    return {'replica_id': -1, 'topics': [{'topic': name, 'partitions': [part]}]}


def _e(name: str, *arguments: Any, **fields: Any) -> Step:
    return Step(name, OFFSET_FOR_LEADER_EPOCH, lambda c: _epoch(c, *arguments, **fields))


EPOCH_SCRIPT = [
    Scenario(
        'leader epochs',
        (OFFSET_FOR_LEADER_EPOCH,),
        [
            _e('empty log', 0),
            *FILL[:1],
            _e('epoch 0', 0),
            _e('epoch 5', 5),
            _e('epoch -1', -1),
            _e('unknown partition', 0, 2),
            _e('unknown topic', 0, 0, 'unknown'),
            _e('current epoch', 0, current=0),
            _e('later current epoch', 0, current=5),
        ],
    )
]


def _delete(c: Any, offset: int, partition: int = 0, topic: Optional[str] = None) -> Dict[str, Any]:
    part = {'partition_index': partition, 'offset': offset}
    name = c.topic() if topic is None else topic
    return {'topics': [{'name': name, 'partitions': [part]}], 'timeout_ms': 5000}


def _d(name: str, *arguments: Any) -> Step:
    return Step(name, DELETE_RECORDS, lambda c: _delete(c, *arguments))


DELETE_RECORDS_SCRIPT = [
    Scenario(
        'delete records',
        (DELETE_RECORDS,),
        [
            *FILL,
            _d('behind the end', 7),
            _d('negative', -5),
            _d('unknown partition', 1, 2),
            _d('unknown topic', 1, 0, 'unknown'),
            _d('first', 1),
            fetching('fetch before the start', 0),
            fetching('fetch at the start', 1),
            _o('earliest', -2),
            _o('latest', -1),
            _d('before the start', 0),
            _d('up to 4', 4),
            fetching('fetch from 4', 4),
            _d('all', -1),
            _o('earliest at last', -2),
            Step('fill later', PRODUCE, _fill),
            fetching('fetch what came later', 6),
        ],
    )
]

SCRIPT = [*FETCH_SCRIPT, *LIST_OFFSETS_SCRIPT, *EPOCH_SCRIPT, *DELETE_RECORDS_SCRIPT]
