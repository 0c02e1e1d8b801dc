"""Responses that say an error, for any request of any API.

Owns: where a code stands. Brokers put it at the top of the response if there is such a field, and
into each topic, partition or group that was asked for if not; this reads the declarations of both
messages and pairs what the response lists with what the request named.
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

#: Fields that hold codes; acknowledgements of share groups have one of their own.
CODES = ('error_code', 'partition_error_code')

# What a response calls a list -> what requests call it.
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
# What a response calls a field -> what requests call it too.
_FIELDS = {
    'partition_index': ('index', 'partition'),
    'partition_id': ('partition',),
    'topic_name': ('name',),
    'user': ('name',),
}
# What stands for an item that a request names by a text or a number alone.
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
# What brokers send as -1 in such an answer.
_UNKNOWN = ('offset', 'watermark', 'epoch', 'node_id', 'leader_id', 'producer_id', 'port')

# What a request and its response call the same, and what is not: that is not known yet.
_OTHER = ('timestamp', 'leader_epoch', 'num_partitions', 'replication_factor')

_SESSION_CODES = {
    FETCH_SESSION_ID_NOT_FOUND,
    INVALID_FETCH_SESSION_EPOCH,
    FETCH_SESSION_TOPIC_ID_ERROR,
    SHARE_SESSION_NOT_FOUND,
    INVALID_SHARE_SESSION_EPOCH,
    SHARE_SESSION_LIMIT_REACHED,
}
# These have both places: the top is for the session or the group, the rest for what is in it.
_PARTITIONS_FIRST = {ApiKey.FETCH, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE}
_BOTH = {ApiKey.OFFSET_FETCH}


def error_answer(call: Call[Any], code: int) -> Optional[Message]:
    """Return the response that gives a request an error; None for one that is not answered."""
    request, version, key = call.request, call.version, call.header.api_key
    if not is_answered(request):
        return None
    if key == ApiKey.METADATA:
        return _metadata(call, code)
    return answer_with(request, version, key, code)


def answer_with(request: Message, version: int, key: int, code: int) -> Message:
    """Return the response of a version that gives a request an error."""
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
        # Nothing was named in the request: where one thing is enough to say it, there is one.
        lists = {name: [_item(None, fields[name].type, version, code)] for name in lists}
    values = {name: _empty(field) for name, field in fields.items() if field.required}
    values.update(lists)
    if top:
        values['error_code'] = code
    return cls(**_complete(cls, values))


def items_with(request: Message, version: int, key: int, name: str, code: int) -> List[Any]:
    """Return the items of a list of the response, one for each that a request names."""
    return _mirrored(request, _fields(response_class(key), version)[name], version, code)


def with_error(response: Message, code: int) -> Message:
    """Put an error into a response, in every place that has one."""
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
    """Return metadata that knows the brokers; a client without any could not ask again."""
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
    """Return the struct that a list is of, None for anything else."""
    is_list = isinstance(kind, ListOf) and isinstance(kind.element, StructMeta)
    return kind.element if is_list else None


def _has_code(kind: Any, version: int) -> bool:
    element = _element(kind)
    if element is None:
        return False
    fields = _fields(element, version)
    return any(name in CODES or _has_code(each.type, version) for name, each in fields.items())


def _mirrored(asked: Any, field: Field, version: int, code: int) -> List[Any]:
    """Return the items of a list of the response, one for each that the request names."""
    items: List[Any] = []
    for name in _LISTS.get(field.name, ()):
        found = getattr(asked, name, None) or []
        for each in found:
            # The directories of AlterReplicaLogDirs are left out of its response.
            items.extend(each.topics if name == 'dirs' else [each])
        if found and name not in ('deletions', 'upsertions'):
            break
    return [_item(each, field.type, version, code) for each in items]


def _item(asked: Any, kind: Any, version: int, code: int) -> Any:
    """Return one item of a list of the response.

    Arguments: asked: what the request has for it: a struct, or its key alone.
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
    """Return what a request says of a field of the response, None if nothing."""
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
    """Add what the declaration demands."""
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
