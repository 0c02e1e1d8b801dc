"""Error responses for requests of all APIs.

Called by guards and faults. As in brokers, the code is at the top level of the response if it has
such a field, and otherwise in each topic, partition or group of the request: the declarations of
both messages are read, and items of the response are paired with those of the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

from kafka.protocol.api import ApiKey, response_class
from kafka.protocol.metadata import MetadataResponse, MetadataResponseBroker
from kafka.protocol.schema import KINDS, Field, ListOf, StructMeta
from kafka.protocol.session import is_answered
from kafka.protocol.wire import Message, Struct
from kafka.testing.errors import (
    FETCH_SESSION_ID_NOT_FOUND,
    FETCH_SESSION_TOPIC_ID_ERROR,
    INVALID_FETCH_SESSION_EPOCH,
    INVALID_SHARE_SESSION_EPOCH,
    SHARE_SESSION_LIMIT_REACHED,
    SHARE_SESSION_NOT_FOUND,
)

if TYPE_CHECKING:
    from kafka.testing.calls import Call

#: Fields of error codes; acknowledgements of share groups have another one.
CODES = ('error_code', 'partition_error_code')

# The name of a list in responses -> its names in requests.
_LISTS: Dict[str, Tuple[str, ...]] = {
    'responses': ('topic_data', 'topics', 'topic_names', 'resources'),
    'partition_responses': ('partition_data',),
    'partitions': ('partitions', 'partition_indexes'),
    'topics': ('topics',),
    'coordinators': ('coordinator_keys',),
    'groups': ('groups', 'group_ids'),
    'results': (
        'creations',
        'resources',
        'topics',
        'groups_names',
        'feature_updates',
        'users',
        'dirs',
        'deletions',
        'upsertions',
    ),
    'filter_results': ('filters',),
    'results_by_topic_v3_and_below': ('v3_and_below_topics',),
    'results_by_partition': ('partitions',),
    'results_by_transaction': ('transactions',),
    'topic_results': ('topics',),
    'markers': ('markers',),
    'replica_election_results': ('topic_partitions',),
    'partition_result': ('partitions',),
    'transaction_states': ('transactional_ids',),
    'entries': ('entries',),
}
# The name of a field in responses -> its other names in requests.
_FIELDS = {
    'partition_index': ('index', 'partition'),
    'partition_id': ('partition',),
    'topic_name': ('name',),
    'user': ('name',),
}
# Fields for the key of an item that a request gives as a string or number only.
_KEYS = (
    'partition_index',
    'partition_id',
    'name',
    'topic',
    'topic_name',
    'group_id',
    'key',
    'transactional_id',
)
# Fields that are -1 in such a response.
_UNKNOWN = ('offset', 'watermark', 'epoch', 'node_id', 'leader_id', 'producer_id', 'port')

# Fields with the same name in request and response, but another meaning: left at the default.
_OTHER = ('timestamp', 'leader_epoch', 'num_partitions', 'replication_factor')

_SESSION_CODES = {
    FETCH_SESSION_ID_NOT_FOUND,
    INVALID_FETCH_SESSION_EPOCH,
    FETCH_SESSION_TOPIC_ID_ERROR,
    SHARE_SESSION_NOT_FOUND,
    INVALID_SHARE_SESSION_EPOCH,
    SHARE_SESSION_LIMIT_REACHED,
}
# APIs with codes at both levels: the top is that of the session or group.
_PARTITIONS_FIRST = {ApiKey.FETCH, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE}
_BOTH = {ApiKey.OFFSET_FETCH}


def error_answer(call: Call[Any], code: int) -> Optional[Message]:
    """Return the error response to a request; None for a request without response."""
    request, version, key = call.request, call.version, call.header.api_key
    if not is_answered(request):
        return None
    if key == ApiKey.METADATA:
        return _metadata(call, code)
    return answer_with(request, version, key, code)


def answer_with(request: Message, version: int, key: int, code: int) -> Message:
    """Return the error response to a request in a version."""
    cls = response_class(key)
    fields = _fields(cls, version)
    top = 'error_code' in fields
    below = not top or key in _BOTH or (key in _PARTITIONS_FIRST and code not in _SESSION_CODES)
    lists = {
        name: _mirrored(request, field, version, code)
        for name, field in fields.items()
        if below and _has_code(field.type, version)
    }
    if key in _PARTITIONS_FIRST and any(lists.values()):
        top = False
    if not top and not any(lists.values()):
        # The request names nothing: a list that is needed for the code gets one item.
        lists = {name: [_item(None, fields[name].type, version, code)] for name in lists}
    values = {name: _empty(field) for name, field in fields.items() if field.required}
    values.update(lists)
    if top:
        values['error_code'] = code
    return cls(**_complete(cls, values))


def items_with(request: Message, version: int, key: int, name: str, code: int) -> List[Any]:
    """Return the items of a list of the response, one for each item of the request."""
    return _mirrored(request, _fields(response_class(key), version)[name], version, code)


def with_error(response: Message, code: int) -> Message:
    """Set an error code in all fields of a response that have one."""
    _put(response, code)
    return response


def _put(struct: Any, code: int) -> None:
    for field in type(struct).fields:
        value = getattr(struct, field.name)
        if field.name in CODES:
            setattr(struct, field.name, code)
        elif isinstance(value, list) and value and isinstance(value[0], Struct):
            for each in value:
                _put(each, code)


def _metadata(call: Call[Any], code: int) -> Message:
    """Return metadata with the brokers; without any, a client could not retry."""
    state = call.state
    topics = call.request.topics
    if topics is None or (not topics and call.version == 0):
        topics = list(state.topics.values())
    (field,) = [each for each in MetadataResponse.fields if each.name == 'topics']
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=n.node_id, host=n.host, port=n.port, rack=n.rack)
            for n in map(state.nodes.__getitem__, state.alive)
        ],
        cluster_id=state.cluster_id,
        controller_id=state.controller_id,
        topics=[_item(each, field.type, call.version, code) for each in topics],
    )
    if 'error_code' in _fields(MetadataResponse, call.version):
        response.error_code = code
    return response


# ---------------------------------------------------------------- pairing


def _fields(struct: Any, version: int) -> Dict[str, Field]:
    return {each.name: each for each in struct.fields if each.versions.includes(version)}


def _element(kind: Any) -> Any:
    """Return the struct type of the elements of a list, None for another type."""
    is_list = isinstance(kind, ListOf) and isinstance(kind.element, StructMeta)
    return kind.element if is_list else None


def _has_code(kind: Any, version: int) -> bool:
    element = _element(kind)
    if element is None:
        return False
    fields = _fields(element, version)
    return any(name in CODES or _has_code(each.type, version) for name, each in fields.items())


def _mirrored(asked: Any, field: Field, version: int, code: int) -> List[Any]:
    """Return the items of a list of the response, one for each item of the request."""
    items: List[Any] = []
    for name in _LISTS.get(field.name, ()):
        found = getattr(asked, name, None) or []
        for each in found:
            # The response of AlterReplicaLogDirs has no log directories.
            items.extend(each.topics if name == 'dirs' else [each])
        if found and name not in ('deletions', 'upsertions'):
            break
    return [_item(each, field.type, version, code) for each in items]


def _item(asked: Any, kind: Any, version: int, code: int) -> Any:
    """Return one item of a list of the response.

    Arguments: asked: the item of the request: a struct, or its key alone.
    """
    element = _element(kind)
    values: Dict[str, Any] = {}
    for name, field in _fields(element, version).items():
        if name in CODES:
            values[name] = code
        elif _has_code(field.type, version):
            values[name] = _mirrored(asked, field, version, code)
        else:
            found = _same(asked, name, values)
            if found is not None:
                values[name] = _copied(found, field.type)
    return element(**_complete(element, values))


def _same(asked: Any, name: str, values: Dict[str, Any]) -> Any:
    """Return the value of the request for a field of the response, None if it has none."""
    if isinstance(asked, (str, int)):
        is_known = any(key in values for key in _KEYS)
        return asked if name in _KEYS and not is_known else None
    for each in (name, *_FIELDS.get(name, ())) if name not in _OTHER else ():
        found = getattr(asked, each, None)
        if found is not None:
            return found
    return None


def _copied(value: Any, kind: Any) -> Any:
    element = _element(kind)
    if element is None:
        return value if not isinstance(value, list) else list(value)
    copies = []
    for each in value:
        found = {field.name: getattr(each, field.name, None) for field in element.fields}
        known = {name: same for name, same in found.items() if same is not None}
        copies.append(element(**_complete(element, known)))
    return copies


def _complete(struct: Any, values: Dict[str, Any]) -> Dict[str, Any]:
    """Add the fields that are required."""
    for field in struct.fields:
        if field.required and field.name not in values:
            values[field.name] = _empty(field)
    return values


def _empty(field: Field) -> Any:
    if isinstance(field.type, ListOf):
        return []
    if isinstance(field.type, StructMeta):
        return field.type(**_complete(field.type, {}))
    if field.type is KINDS['Records']:
        return b''
    if field.name.endswith(_UNKNOWN):
        return -1
    return field.type.zero
