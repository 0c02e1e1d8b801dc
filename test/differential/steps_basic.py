"""What every client asks first, and what nobody should send.

ApiVersions, Metadata, DescribeCluster, FindCoordinator, SASL without SASL, malformed requests.
"""

from __future__ import annotations

import struct
from typing import Any, Dict, List

from test.differential.script import REFUSED_ABOVE, REFUSED_BELOW, Scenario, Step, framed, one

METADATA = 3
FIND_COORDINATOR = 10
SASL_HANDSHAKE = 17
API_VERSIONS = 18
SASL_AUTHENTICATE = 36
DESCRIBE_CLUSTER = 60
DESCRIBE_TOPIC_PARTITIONS = 75

UNKNOWN_ID = b'\x07' * 16
SOFTWARE = {'client_software_name': 'script', 'client_software_version': '1.0'}


def _metadata(*topics: Any, **options: Any) -> Dict[str, Any]:
    """Return a question about topics; options are its other fields."""
    return dict({'topics': list(topics), 'allow_auto_topic_creation': False}, **options)


def _many_names(c: Any) -> Dict[str, Any]:
    names = ('..', '.', 'with blank', 'a/b', 'x' * 250, 'ä', '')
    return _metadata(*({'name': name} for name in names))


API_VERSIONS_SCRIPT = [
    one('api versions', API_VERSIONS, lambda c: SOFTWARE),
    one('api versions', API_VERSIONS, lambda c: SOFTWARE, versions=REFUSED_ABOVE),
    one(
        'api versions no software',
        API_VERSIONS,
        lambda c: {'client_software_name': '', 'client_software_version': ''},
        versions='3+',
    ),
    one(
        'api versions strange software',
        API_VERSIONS,
        lambda c: {'client_software_name': 'a b!', 'client_software_version': '1'},
        versions='3+',
    ),
    one(
        'api versions other cluster',
        API_VERSIONS,
        lambda c: dict(SOFTWARE, cluster_id='other', node_id=77),
        versions='5+',
    ),
]

METADATA_SCRIPT = [
    # First, while few topics are there.
    one('metadata of all', METADATA, lambda c: _metadata() if c.version == 0 else {'topics': None}),
    one('metadata of none', METADATA, lambda c: _metadata(), versions='1+'),
    one('metadata of one', METADATA, lambda c: _metadata({'name': c.common_topic()})),
    one(
        'metadata of one twice',
        METADATA,
        lambda c: _metadata({'name': c.common_topic()}, {'name': c.common_topic()}),
    ),
    one('metadata of unknown', METADATA, lambda c: _metadata({'name': c.name()}), versions='4+'),
    one('metadata of illegal names', METADATA, _many_names),
    one(
        'metadata operations',
        METADATA,
        lambda c: _metadata(
            {'name': c.common_topic()},
            include_topic_authorized_operations=True,
            include_cluster_authorized_operations=True,
        ),
        versions='8+',
    ),
    one(
        'metadata by id',
        METADATA,
        lambda c: _metadata({'name': None, 'topic_id': c.topic_id(c.common_topic())}),
        versions='10+',
    ),
    one(
        'metadata by id and name',
        METADATA,
        lambda c: _metadata({'name': c.common_topic(), 'topic_id': c.topic_id(c.common_topic())}),
        versions='10+',
    ),
    one(
        'metadata by unknown id',
        METADATA,
        lambda c: _metadata({'name': None, 'topic_id': UNKNOWN_ID}),
        versions='10+',
    ),
    one(
        'metadata by id and of unknown',
        METADATA,
        lambda c: _metadata(
            {'name': None, 'topic_id': c.topic_id(c.common_topic())}, {'name': c.name()}
        ),
        versions='10+',
    ),
    one('metadata by nothing', METADATA, lambda c: _metadata({'name': None}), versions='10+'),
    Scenario(
        'metadata creates',
        (METADATA,),
        [
            Step(
                'ask',
                METADATA,
                lambda c: _metadata({'name': c.name()}, allow_auto_topic_creation=True),
            ),
            Step('ask again', METADATA, lambda c: _metadata({'name': c.topic('x')})),
        ],
    ),
    one('metadata', METADATA, lambda c: _metadata(), versions=REFUSED_ABOVE),
    one('metadata', METADATA, lambda c: _metadata(), versions=REFUSED_BELOW),
]


def _cluster(**fields: Any) -> Dict[str, Any]:
    return dict({'include_cluster_authorized_operations': False}, **fields)


CLUSTER_SCRIPT = [
    one('cluster', DESCRIBE_CLUSTER, lambda c: _cluster()),
    one(
        'cluster operations',
        DESCRIBE_CLUSTER,
        lambda c: _cluster(include_cluster_authorized_operations=True),
    ),
    one('controllers', DESCRIBE_CLUSTER, lambda c: _cluster(endpoint_type=2), versions='1+'),
    one('no endpoints', DESCRIBE_CLUSTER, lambda c: _cluster(endpoint_type=9), versions='1+'),
    one('fenced', DESCRIBE_CLUSTER, lambda c: _cluster(include_fenced_brokers=True), versions='2+'),
    one(
        'topic pages',
        DESCRIBE_TOPIC_PARTITIONS,
        lambda c: {
            'topics': [{'name': c.common_topic()}, {'name': c.name()}, {'name': 'a b'}],
            'response_partition_limit': 2000,
        },
    ),
    one(
        'topic page of one',
        DESCRIBE_TOPIC_PARTITIONS,
        lambda c: {'topics': [{'name': c.common_topic()}], 'response_partition_limit': 1},
    ),
    one(
        'topic page from a cursor',
        DESCRIBE_TOPIC_PARTITIONS,
        lambda c: {
            'topics': [{'name': c.common_topic()}],
            'response_partition_limit': 10,
            'cursor': {'topic_name': c.common_topic(), 'partition_index': 1},
        },
    ),
]


def _find(c: Any, kind: int, *words: str) -> Dict[str, Any]:
    keys = [c.group(word) if kind == 0 else c.name(word) for word in words]
    return {'key': keys[0], 'key_type': kind, 'coordinator_keys': keys}


def _find_empty(c: Any) -> Dict[str, Any]:
    return {'key': '', 'key_type': 0, 'coordinator_keys': ['']}


COORDINATOR_SCRIPT = [
    one('coordinator', FIND_COORDINATOR, lambda c: _find(c, 0, 'g')),
    one('coordinator of none', FIND_COORDINATOR, _find_empty),
    one(
        'coordinator of a transaction',
        FIND_COORDINATOR,
        lambda c: {
            'key': c.transaction(),
            'key_type': 1,
            'coordinator_keys': [c.transaction(), c.transaction('y')],
        },
        versions='1+',
    ),
    one('coordinator of type 9', FIND_COORDINATOR, lambda c: _find(c, 9, 'g'), versions='1+'),
    one('coordinator of type 2', FIND_COORDINATOR, lambda c: _find(c, 2, 'a', 'b'), versions='1+'),
    one('coordinators', FIND_COORDINATOR, lambda c: _find(c, 0, 'a', 'b'), versions='4+'),
    one('no coordinators', FIND_COORDINATOR, lambda c: {'coordinator_keys': []}, versions='4+'),
    one('coordinator', FIND_COORDINATOR, _find_empty, versions=REFUSED_ABOVE),
]

SASL_SCRIPT = [
    one('handshake', SASL_HANDSHAKE, lambda c: {'mechanism': 'PLAIN'}),
    one('authenticate', SASL_AUTHENTICATE, lambda c: {'auth_bytes': b'\0a\0b'}),
]


def _header(api: int, version: int, client_id: bytes = b'\x00\x01x') -> bytes:
    return struct.pack('>hhi', api, version, 7) + client_id


def _lowest(c: Any, api: int) -> int:
    return int(c.release.served[api][0])


def _text(text: bytes) -> bytes:
    return struct.pack('>h', len(text)) + text


#: name -> bytes. Version 1 of Metadata is the lowest that has no tagged fields in any release.
MALFORMED: List[Step] = [
    Step('unknown api', 0, frame=lambda c: framed(_header(999, 0))),
    Step('negative api', 0, frame=lambda c: framed(_header(-1, 0))),
    Step('metadata v99', 0, frame=lambda c: framed(_header(3, 99) + struct.pack('>i', 0))),
    Step('metadata negative version', 0, frame=lambda c: framed(_header(3, -1) + bytes(4))),
    Step('produce v99', 0, frame=lambda c: framed(_header(0, 99) + bytes(10))),
    Step('empty frame', 0, frame=lambda c: framed(b'')),
    Step('three bytes', 0, frame=lambda c: framed(b'\0\3\0')),
    Step('negative size', 0, frame=lambda c: struct.pack('>i', -1)),
    Step('very negative size', 0, frame=lambda c: struct.pack('>i', -(2**31))),
    Step('two gigabytes', 0, frame=lambda c: struct.pack('>i', 2**31 - 1) + bytes(64)),
    Step('http', 0, frame=lambda c: b'GET / HTTP/1.1\r\n\r\n'),
    Step('half a frame', 0, frame=lambda c: struct.pack('>i', 100) + bytes(10)),
    Step(
        'null client id',
        0,
        frame=lambda c: framed(
            _header(3, 0, b'\xff\xff') + struct.pack('>i', 1) + _text(b'common')
        ),
    ),
    Step('client id cut off', 0, frame=lambda c: framed(_header(3, 0, b'\x00\x09abc'))),
    Step('client id too negative', 0, frame=lambda c: framed(_header(3, 0, b'\xff\xf0abc'))),
    Step(
        'client id no UTF-8', 0, frame=lambda c: framed(_header(3, 0, b'\x00\x01\xff') + bytes(4))
    ),
    Step('metadata cut off', 0, frame=lambda c: framed(_header(3, 0) + b'\0\0')),
    Step(
        'metadata array too long',
        0,
        frame=lambda c: framed(_header(3, 0) + b'\0\0\0\5' + b'\0\1a'),
    ),
    Step('metadata huge array', 0, frame=lambda c: framed(_header(3, 0) + b'\x7f\xff\xff\xff')),
    Step(
        'metadata negative array', 0, frame=lambda c: framed(_header(3, 0) + struct.pack('>i', -5))
    ),
    Step(
        'metadata negative string',
        0,
        frame=lambda c: framed(_header(3, 0) + struct.pack('>ih', 1, -7)),
    ),
    Step(
        'metadata null string',
        0,
        frame=lambda c: framed(_header(3, 0) + struct.pack('>ih', 1, -1)),
    ),
    Step(
        'metadata and more',
        0,
        frame=lambda c: framed(
            _header(3, 0) + struct.pack('>i', 1) + _text(b'common') + b'more bytes'
        ),
    ),
    Step(
        'produce cut off',
        0,
        frame=lambda c: framed(_header(0, _lowest(c, 0)) + b'\xff\xff\0\1\0\0\3\xe8\0\0\0\1'),
    ),
    Step(
        'produce negative bytes',
        0,
        frame=lambda c: framed(
            _header(0, _lowest(c, 0))
            + (b'\xff\xff' if _lowest(c, 0) >= 3 else b'')
            + struct.pack('>hii', 1, 1000, 1)
            + _text(b'common')
            + struct.pack('>iii', 1, 0, -9)
        ),
    ),
    Step(
        'fetch cut off',
        0,
        frame=lambda c: framed(_header(1, _lowest(c, 1)) + struct.pack('>iii', -1, 1, 1)),
    ),
    Step('join group cut off', 0, frame=lambda c: framed(_header(11, 0) + b'\0\1')),
    Step('api versions v3 cut off', 0, frame=lambda c: framed(_header(18, 3) + b'\0\x09a')),
    Step('api versions v0 and more', 0, frame=lambda c: framed(_header(18, 0) + b'more bytes')),
    Step('leader and isr', 0, frame=lambda c: framed(_header(4, 0) + bytes(4))),
]


def _prepared(c: Any) -> Dict[str, Any]:
    return _metadata({'name': c.common_topic()})


MALFORMED_SCRIPT = [
    Scenario(
        'malformed',
        (METADATA,),
        [Step('prepare', METADATA, _prepared), *MALFORMED],
        versions='high',
    )
]

SCRIPT = [
    *API_VERSIONS_SCRIPT,
    *METADATA_SCRIPT,
    *CLUSTER_SCRIPT,
    *COORDINATOR_SCRIPT,
    *SASL_SCRIPT,
    *MALFORMED_SCRIPT,
]
