"""The table of API keys with their classes, request and response headers, version selection.

Called by session.py, which handles frames and their length prefix. The messages are in the modules
of their families, which are imported on first use.

Headers follow KIP-482: request header 1, or 2 for flexible versions; response header 0, or 1 for
flexible versions, except that ApiVersions responses always have header 0 (KIP-511), because the
client does not know yet which versions the broker supports.
"""

from __future__ import annotations

import enum
import struct
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple, Type, TypeVar

from kafka.errors import BufferUnderflowError, ProtocolError, UnsupportedVersionError
from kafka.internals.lazy_imports import import_late
from kafka.protocol import compiler
from kafka.protocol.primitives import read_tags
from kafka.protocol.wire import Buffer, Message, Route

__all__ = [
    'ApiKey',
    'RequestHeader',
    'Route',
    'choose_version',
    'decode_request',
    'decode_response',
    'encode_request',
    'encode_response',
    'peek_request_header',
    'request_class',
    'response_class',
]


class ApiKey(enum.IntEnum):
    """The APIs that a client may call, by the names of the protocol guide."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    DESCRIBE_QUORUM = 55
    UPDATE_FEATURES = 57
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92
    STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE = 93
    UNREGISTER_CONTROLLER = 94


#: The module of each API, and its name there.
_FAMILIES = {
    0: ('produce', 'Produce'),
    1: ('fetch', 'Fetch'),
    2: ('list_offsets', 'ListOffsets'),
    3: ('metadata', 'Metadata'),
    8: ('commit', 'OffsetCommit'),
    9: ('commit', 'OffsetFetch'),
    10: ('find_coordinator', 'FindCoordinator'),
    11: ('group', 'JoinGroup'),
    12: ('group', 'Heartbeat'),
    13: ('group', 'LeaveGroup'),
    14: ('group', 'SyncGroup'),
    15: ('admin.groups', 'DescribeGroups'),
    16: ('admin.groups', 'ListGroups'),
    17: ('sasl', 'SaslHandshake'),
    18: ('api_versions', 'ApiVersions'),
    19: ('admin.topics', 'CreateTopics'),
    20: ('admin.topics', 'DeleteTopics'),
    21: ('admin.topics', 'DeleteRecords'),
    22: ('transaction', 'InitProducerId'),
    23: ('fetch', 'OffsetForLeaderEpoch'),
    24: ('transaction', 'AddPartitionsToTxn'),
    25: ('transaction', 'AddOffsetsToTxn'),
    26: ('transaction', 'EndTxn'),
    27: ('transaction', 'WriteTxnMarkers'),
    28: ('transaction', 'TxnOffsetCommit'),
    29: ('admin.acls', 'DescribeAcls'),
    30: ('admin.acls', 'CreateAcls'),
    31: ('admin.acls', 'DeleteAcls'),
    32: ('admin.configs', 'DescribeConfigs'),
    33: ('admin.configs', 'AlterConfigs'),
    34: ('admin.partitions', 'AlterReplicaLogDirs'),
    35: ('admin.partitions', 'DescribeLogDirs'),
    36: ('sasl', 'SaslAuthenticate'),
    37: ('admin.topics', 'CreatePartitions'),
    38: ('admin.tokens', 'CreateDelegationToken'),
    39: ('admin.tokens', 'RenewDelegationToken'),
    40: ('admin.tokens', 'ExpireDelegationToken'),
    41: ('admin.tokens', 'DescribeDelegationToken'),
    42: ('admin.groups', 'DeleteGroups'),
    43: ('admin.partitions', 'ElectLeaders'),
    44: ('admin.configs', 'IncrementalAlterConfigs'),
    45: ('admin.partitions', 'AlterPartitionReassignments'),
    46: ('admin.partitions', 'ListPartitionReassignments'),
    47: ('commit', 'OffsetDelete'),
    48: ('admin.quotas', 'DescribeClientQuotas'),
    49: ('admin.quotas', 'AlterClientQuotas'),
    50: ('admin.users', 'DescribeUserScramCredentials'),
    51: ('admin.users', 'AlterUserScramCredentials'),
    55: ('admin.cluster', 'DescribeQuorum'),
    57: ('admin.cluster', 'UpdateFeatures'),
    60: ('admin.cluster', 'DescribeCluster'),
    61: ('transaction', 'DescribeProducers'),
    64: ('admin.cluster', 'UnregisterBroker'),
    65: ('transaction', 'DescribeTransactions'),
    66: ('transaction', 'ListTransactions'),
    68: ('group', 'ConsumerGroupHeartbeat'),
    69: ('admin.groups', 'ConsumerGroupDescribe'),
    71: ('telemetry', 'GetTelemetrySubscriptions'),
    72: ('telemetry', 'PushTelemetry'),
    74: ('admin.configs', 'ListConfigResources'),
    75: ('metadata', 'DescribeTopicPartitions'),
    76: ('share', 'ShareGroupHeartbeat'),
    77: ('share', 'ShareGroupDescribe'),
    78: ('share', 'ShareFetch'),
    79: ('share', 'ShareAcknowledge'),
    80: ('admin.cluster', 'AddRaftVoter'),
    81: ('admin.cluster', 'RemoveRaftVoter'),
    88: ('streams', 'StreamsGroupHeartbeat'),
    89: ('streams', 'StreamsGroupDescribe'),
    90: ('share', 'DescribeShareGroupOffsets'),
    91: ('share', 'AlterShareGroupOffsets'),
    92: ('share', 'DeleteShareGroupOffsets'),
    93: ('streams', 'StreamsGroupTopologyDescriptionUpdate'),
    94: ('admin.cluster', 'UnregisterController'),
}


_REQUEST_START = struct.Struct('>hhih')  # api key, version, correlation id, length of client id
_CORRELATION_ID = struct.Struct('>i')
_NO_TAGS = b'\x00'


# Message classes that were looked up: an import statement is slow even for a loaded module.
_classes: Dict[Tuple[int, str], Type[Message]] = {}


class _HeaderFields(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: Optional[str]


class RequestHeader(_HeaderFields):
    """The fields before the body of a request: four values, or the arguments of 1.x.

    Arguments, 1.x: request: a struct with API_KEY and API_VERSION; correlation_id; client_id.
    """

    __slots__ = ()

    def __new__(cls, *values: Any, **named: Any) -> RequestHeader:
        """Distinguish the two kinds of arguments by their number."""
        if len(values) == 4:
            return tuple.__new__(cls, values)
        return cls._of_request(*values, **named)

    @classmethod
    def _of_request(
        cls, request: Any, correlation_id: int = 0, client_id: Optional[str] = 'kafka-python'
    ) -> RequestHeader:
        values = request.API_KEY, request.API_VERSION, correlation_id, client_id
        return tuple.__new__(cls, values)

    def encode(self) -> bytes:
        """Return the bytes of header 1; header 2 is followed by tagged fields.

        Raises ProtocolError for values out of range.
        """
        return _request_start(*self)


def request_class(api_key: int) -> Type[Message]:
    """Return the request class of an API. Raises ProtocolError unless a client may send it."""
    try:
        return _classes[api_key, 'Request']
    except (KeyError, TypeError):
        return _message_class(api_key, 'Request')


def response_class(api_key: int) -> Type[Message]:
    """Return the response class of an API. Raises ProtocolError unless a client may send it."""
    try:
        return _classes[api_key, 'Response']
    except (KeyError, TypeError):
        return _message_class(api_key, 'Response')


def _message_class(api_key: int, suffix: str) -> Type[Message]:
    try:
        module, name = _FAMILIES[api_key]
    except (KeyError, TypeError):
        raise ProtocolError('unknown API key %r' % (api_key,)) from None
    found: Type[Message] = getattr(import_late('kafka.protocol.' + module), name + suffix)
    _classes[api_key, suffix] = found
    return found


def encode_request(
    request: Message, version: int, correlation_id: int, client_id: Optional[str]
) -> bytes:
    """Return header and body of a request, without the length prefix of the frame.

    Arguments and errors as ``encode_request_parts``.
    """
    return b''.join(encode_request_parts(request, version, correlation_id, client_id))


def encode_request_parts(
    request: Message, version: int, correlation_id: int, client_id: Optional[str]
) -> List[bytes]:
    """Return the parts of the result of ``encode_request``; records are not copied.

    Arguments: client_id: None is sent as null.
    Raises TypeError for an argument of a wrong type; ProtocolError for a value that does not fit
    the header, or a field that does not fit the version, see ``Message.encode``.
    """
    if type(correlation_id) is not int or not isinstance(request, Message):
        _check_types('request', request, correlation_id)
    if version not in request.encoders:  # not checked yet
        request.check_version(version)
    if client_id is not None and not isinstance(client_id, str):
        raise TypeError('client_id must be str or None, not %s' % type(client_id).__name__)
    start = _request_start(_api_key(type(request)), version, correlation_id, client_id)
    flexible_from = request.flexible_from
    tags = b'' if flexible_from is None or version < flexible_from else _NO_TAGS
    return [start, tags, *compiler.encode_parts(request, version)]


def _request_start(
    api_key: int, version: int, correlation_id: int, client_id: Optional[str]
) -> bytes:
    try:
        name = b'' if client_id is None else client_id.encode('utf-8')
        size = -1 if client_id is None else len(name)
        return _REQUEST_START.pack(api_key, version, correlation_id, size) + name
    except (struct.error, UnicodeEncodeError) as error:
        raise ProtocolError(
            'correlation_id %r or client_id does not fit the request header' % (correlation_id,)
        ) from error


def peek_request_header(data: Buffer) -> RequestHeader:
    """Read the header of a request, also one with an unknown API key or version.

    Raises BufferUnderflowError for bytes that end too early, ProtocolError for bytes that are not a
    header.
    """
    return _read_request_start(data)[0]


def decode_request(data: Buffer) -> Tuple[RequestHeader, Message]:
    """Read header and body of a request that fills ``data`` completely.

    Raises BufferUnderflowError for bytes that end too early, ProtocolError for malformed bytes and
    for an unknown API or version; ``peek_request_header`` still reads those.
    """
    header, pos = _read_request_start(data)
    cls = request_class(header.api_key)
    cls.check_version(header.api_version)
    if cls.is_flexible(header.api_version):
        pos = _skip_tags(data, pos)
    return header, cls.decode_from(data, pos, header.api_version)


def encode_response(response: Message, version: int, correlation_id: int) -> bytes:
    """Return header and body of a response, without the length prefix of the frame.

    Raises as ``encode_response_parts``.
    """
    return b''.join(encode_response_parts(response, version, correlation_id))


def encode_response_parts(response: Message, version: int, correlation_id: int) -> List[bytes]:
    """Return the parts of the result of ``encode_response``; records are not copied.

    Raises TypeError for an argument of a wrong type; ProtocolError for a value that does not fit
    the header, or a field that does not fit the version, see ``Message.encode``.
    """
    _check_types('response', response, correlation_id)
    response.check_version(version)
    tags = _NO_TAGS if _has_response_tags(type(response), version) else b''
    try:
        start = _CORRELATION_ID.pack(correlation_id)
    except struct.error as error:
        raise ProtocolError(
            'correlation_id must be an int32, got %r' % (correlation_id,)
        ) from error
    return [start, tags, *response.encode_parts(version)]


M = TypeVar('M', bound=Message)


def decode_response(response_cls: Type[M], data: Buffer, version: int) -> Tuple[int, M]:
    """Read header and body of a response; return its correlation id and the message.

    Raises BufferUnderflowError for bytes that end too early, ProtocolError for malformed ones.
    """
    if version not in response_cls.decoders:  # not checked yet
        response_cls.check_version(version)
    if len(data) < _CORRELATION_ID.size:
        raise BufferUnderflowError('a response of %d bytes has no correlation id' % len(data))
    (correlation_id,) = _CORRELATION_ID.unpack_from(data)
    pos = _CORRELATION_ID.size
    flexible_from = response_cls.flexible_from
    if flexible_from is not None and version >= flexible_from:
        if response_cls.api_key != ApiKey.API_VERSIONS:
            pos = pos + 1 if data[pos : pos + 1] == _NO_TAGS else _skip_tags(data, pos)
    return correlation_id, compiler.decode(response_cls, data, pos, version)


def choose_version(
    request_cls: Type[Message],
    broker_ranges: Mapping[int, Tuple[int, int]],
    highest: Optional[int] = None,
) -> int:
    """Return the highest version of a request that both sides support, at most ``highest``.

    broker_ranges: first and last version by API key, as listed by the broker.
    Raises UnsupportedVersionError if they have no version in common; it names the API and both
    ranges.
    """
    last = request_cls.max_version if highest is None else min(highest, request_cls.max_version)
    offered = broker_ranges.get(_api_key(request_cls))
    if offered is not None:
        version = min(last, offered[1])
        if version >= max(request_cls.min_version, offered[0]):
            return version
    raise UnsupportedVersionError(
        '%s: this client has versions %d to %d, the broker %s'
        % (
            request_cls.__name__,
            request_cls.min_version,
            last,
            'does not support it' if offered is None else '%d to %d' % offered,
        )
    )


def _check_types(argument: str, message: Any, correlation_id: Any) -> None:
    if not isinstance(message, Message):
        raise TypeError('%s must be a message, not %r' % (argument, message))
    if not isinstance(correlation_id, int):
        raise TypeError('correlation_id must be an int, not %s' % type(correlation_id).__name__)


def _api_key(cls: Type[Message]) -> int:
    if cls.api_key is None:
        raise ProtocolError('%s is neither a request nor a response' % cls.__name__)
    return cls.api_key


def _has_response_tags(cls: Type[Message], version: int) -> bool:
    return cls.api_key != ApiKey.API_VERSIONS and cls.is_flexible(version)


def _read_request_start(data: Buffer) -> Tuple[RequestHeader, int]:
    """Return the header up to the client id, and the position after it."""
    try:
        api_key, version, correlation_id, size = _REQUEST_START.unpack_from(data)
    except struct.error as error:
        raise BufferUnderflowError(
            '%d bytes are too few for a request header' % len(data)
        ) from error
    pos = _REQUEST_START.size
    if size < -1:
        raise ProtocolError('the length of the client id must be >= -1, got %d' % size)
    if size > len(data) - pos:
        raise BufferUnderflowError('the bytes end inside the client id')
    if size == -1:
        return RequestHeader(api_key, version, correlation_id, None), pos
    try:
        client_id = str(data[pos : pos + size], 'utf-8')
    except UnicodeDecodeError as error:
        raise ProtocolError('the client id is not UTF-8') from error
    return RequestHeader(api_key, version, correlation_id, client_id), pos + size


def _skip_tags(data: Buffer, pos: int) -> int:
    """Return the position after the tagged fields of a header; none are defined yet."""
    try:
        count = data[pos]
        return pos + 1 if count == 0 else read_tags(bytes(data), pos + 1, len(data), count)[1]
    except IndexError as error:
        raise BufferUnderflowError('the bytes end inside the tagged fields of a header') from error


def __getattr__(name: str) -> object:
    """Load the base classes of request and response structs, which 2.x had here."""
    if name in ('Request', 'Response', 'Struct'):
        return getattr(import_late('kafka.protocol.struct_classes'), name)
    raise AttributeError('module %r has no attribute %r' % (__name__, name))
