"""What a topic's configuration makes of records, and what old readers get of them."""

from __future__ import annotations

from typing import Any, Callable, Dict

from test.differential.script import Scenario, Step
from test.differential.steps_data import FETCH, PRODUCE, at_time, batch, fetch_back, produce
from test.differential.steps_fetch import fetching

CREATE_TOPICS = 19


def _topic_with(**configs: str) -> Callable[[Any], Dict[str, Any]]:
    """Return what creates the case's topic with configurations of it."""

    def create(c: Any) -> Dict[str, Any]:
        settings = [
            {'name': name.replace('_', '.'), 'value': value} for name, value in configs.items()
        ]
        topic = {'name': c.name('t'), 'num_partitions': 2, 'replication_factor': 1}
        return {'topics': [dict(topic, configs=settings)], 'timeout_ms': 10000}

    return create


def _topic_script(name: str, configs: Dict[str, str], *steps: Step) -> Scenario:
    create = Step('create', CREATE_TOPICS, _topic_with(**configs))
    return Scenario(name, (PRODUCE,), [create, *steps, fetch_back()], since=(0, 10, 1))


def _p(name: str, records: Callable[[Any], bytes]) -> Step:
    return Step(name, PRODUCE, lambda c: produce(c, records(c)))


SCRIPT = [
    _topic_script(
        'compacted',
        {'cleanup_policy': 'compact'},
        _p('with key', batch),
        _p('without key', lambda c: batch(c, key=None)),
        _p('without value', lambda c: batch(c, values=[None])),
        _p('last', lambda c: batch(c, values=[b'last'])),
    ),
    _topic_script(
        'append time',
        {'message_timestamp_type': 'LogAppendTime'},
        _p('plain', batch),
        _p('gzip', lambda c: batch(c, codec=1)),
    ),
    _topic_script(
        'gzip topic',
        {'compression_type': 'gzip'},
        _p('plain', batch),
        _p('snappy', lambda c: batch(c, codec=2)),
    ),
    _topic_script(
        'plain topic', {'compression_type': 'uncompressed'}, _p('gzip', lambda c: batch(c, codec=1))
    ),
    _topic_script(
        'small messages',
        {'max_message_bytes': '200'},
        _p('small', batch),
        _p('large', lambda c: batch(c, values=[bytes(500)])),
        _p('large in gzip', lambda c: batch(c, values=[bytes(500)], codec=1)),
    ),
    _topic_script(
        'two replicas wanted',
        {'min_insync_replicas': '2'},
        _p('acks 1', batch),
        Step('acks -1', PRODUCE, lambda c: produce(c, batch(c), acks=-1)),
    ),
    _topic_script(
        'near times',
        {'message_timestamp_difference_max_ms': '60000'},
        _p('an hour ago', batch),
        _p('in an hour', lambda c: at_time(c, c.now_ms + 7_200_000)),
    ),
    *(
        _topic_script(
            'stored as ' + version, {'message_format_version': version}, _p('produce', batch)
        )._replace(since=since, until=(3, 9))
        for version, since in (('0.9.0', (0, 10, 1)), ('0.10.0', (0, 10, 1)), ('0.11.0', (0, 11)))
    ),
    Scenario(
        'read back in old formats',
        (FETCH,),
        [
            Step('plain', PRODUCE, lambda c: produce(c, batch(c))),
            Step('gzip', PRODUCE, lambda c: produce(c, batch(c, codec=1))),
            fetching('fetch'),
            fetching('fetch inside', 3),
            fetching('few bytes', partition_max_bytes=60),
        ],
        since=(0, 10),
    ),
]
