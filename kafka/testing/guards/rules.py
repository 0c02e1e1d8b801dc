"""The registry of guards, and functions to refuse a request or some of its items.

Items are refused as in Kafka: the allowed ones go on to the handler in a copy of the request, and
the refused ones are added to the response. Requests are never modified: tests may keep them.
"""

from __future__ import annotations

import copy
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple, Type, TypeVar

from kafka.protocol.api import ApiKey
from kafka.protocol.wire import ZERO_UUID, Message, Struct
from kafka.testing import errors
from kafka.testing.calls import Call
from kafka.testing.error_answers import answer_with, items_with
from kafka.testing.security import acls

M = TypeVar('M', bound=Message)

#: The response to a request that is refused, None if the handler answers.
Answer = Optional[Any]
Guard = Callable[[Call[Any]], Answer]

GUARDS: Dict[int, Guard] = {}

DENIED = 'Authorization failed.'
#: APIs with an error message besides the code: always, since 2.4, with ZooKeeper, with KRaft.
_TOLD = {
    ApiKey.DESCRIBE_ACLS,
    ApiKey.CREATE_ACLS,
    ApiKey.DELETE_ACLS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    ApiKey.ALTER_CLIENT_QUOTAS,
    ApiKey.UPDATE_FEATURES,
}
#: Since messages are generated (2.4).
_TOLD_LATER = {ApiKey.FIND_COORDINATOR, ApiKey.CREATE_TOPICS, ApiKey.DESCRIBE_CONFIGS}
_TOLD_WITH_ZOOKEEPER = {ApiKey.CREATE_PARTITIONS}
_TOLD_WITH_KRAFT = {
    ApiKey.DELETE_TOPICS,
    ApiKey.ELECT_LEADERS,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    ApiKey.DESCRIBE_QUORUM,
    ApiKey.DESCRIBE_PRODUCERS,
    ApiKey.UNREGISTER_BROKER,
    ApiKey.ADD_RAFT_VOTER,
    ApiKey.REMOVE_RAFT_VOTER,
    ApiKey.UNREGISTER_CONTROLLER,
}

#: The operations on each resource type.
OPERATIONS = {
    acls.TOPIC: (
        acls.READ,
        acls.WRITE,
        acls.CREATE,
        acls.DELETE,
        acls.ALTER,
        acls.DESCRIBE,
        acls.DESCRIBE_CONFIGS,
        acls.ALTER_CONFIGS,
    ),
    acls.GROUP: (
        acls.READ,
        acls.DELETE,
        acls.DESCRIBE,
        acls.DESCRIBE_CONFIGS,
        acls.ALTER_CONFIGS,
    ),
    acls.CLUSTER: (
        acls.CREATE,
        acls.ALTER,
        acls.DESCRIBE,
        acls.CLUSTER_ACTION,
        acls.DESCRIBE_CONFIGS,
        acls.ALTER_CONFIGS,
        acls.IDEMPOTENT_WRITE,
    ),
}


def guards(*requests: Type[Message]) -> Callable[[Guard], Guard]:
    """Register the decorated function as the guard of some APIs."""

    def register(guard: Guard) -> Guard:
        for request in requests:
            assert request.api_key is not None
            GUARDS[request.api_key] = guard
        return guard

    return register


def guarded(call: Call[Any]) -> bool:
    """Check a call; return False if it was answered, True if the handler has to answer."""
    guard = GUARDS.get(call.header.api_key)
    if guard is None:
        return True
    of_tests, call.changes = call.changes, []
    response = guard(call)
    call.changes += of_tests  # applied last
    if response is not None:
        call.respond(response)
    return call.is_waiting


# ---------------------------------------------------------------- permissions


def may_cluster(call: Call[Any], operation: int) -> bool:
    """Return True if the client may perform an operation on the cluster."""
    return call.may(operation, acls.CLUSTER, acls.CLUSTER_NAME)


def may_topic(call: Call[Any], operation: int, name: Optional[str]) -> bool:
    """Return True if the client may perform an operation on a topic; True without a name."""
    return name is None or call.may(operation, acls.TOPIC, name)


def topic_name(call: Call[Any], name: Optional[str], topic_id: bytes) -> Optional[str]:
    """Return the name of a topic given by name or id, None for an unknown id."""
    if topic_id == ZERO_UUID:
        return name
    topic = call.state.topic_by_id(topic_id)
    return None if topic is None else topic.name


def authorized_operations(call: Call[Any], resource_type: int, name: str) -> int:
    """Return the bits of the operations that the client may perform on a resource."""
    operations = OPERATIONS[resource_type]
    if resource_type == acls.GROUP and call.state.release.version < (4, 0):
        operations = operations[:3]  # configs of groups came with KIP-848
    return sum(1 << each for each in operations if call.may(each, resource_type, name))


# ---------------------------------------------------------------- refusals


def refused(call: Call[Any], code: int) -> Any:
    """Return the response that refuses the whole request."""
    response = answer_with(call.request, call.version, call.header.api_key, code)
    tell(response, text_for(call))
    return response


def text_for(call: Call[Any]) -> Optional[str]:
    """Return the error message of an API in the release, None if it has no message."""
    key, release = call.header.api_key, call.state.release
    if key in _TOLD_LATER and release.version < (2, 4):
        return None
    if key == ApiKey.UNREGISTER_BROKER and release.version < (4, 1):
        return ''
    more = _TOLD_WITH_ZOOKEEPER if release.has_zookeeper else _TOLD_WITH_KRAFT
    return DENIED if key in _TOLD or key in _TOLD_LATER or key in more else None


def tell(struct: Any, text: Optional[str]) -> None:
    """Set all error messages in a struct."""
    for field in type(struct).fields:
        value = getattr(struct, field.name)
        if field.name == 'error_message':
            struct.error_message = text
        elif isinstance(value, list):
            for each in value:
                if isinstance(each, Struct):
                    tell(each, text)


def changed(request: M, **values: Any) -> M:
    """Return a copy of a request with other values."""
    made = copy.copy(request)
    for name, value in values.items():
        setattr(made, name, value)
    return made


def change_response(call: Call[Any], change: Callable[[Any], None]) -> None:
    """Let a function modify the response of the handler or the guard."""

    def apply(response: Message) -> Message:
        change(response)
        return response

    call.changes.append(apply)


def split(items: Iterable[Any], is_allowed: Callable[[Any], bool]) -> Tuple[List[Any], List[Any]]:
    """Return the items that are allowed, and those that are not."""
    found: Tuple[List[Any], List[Any]] = ([], [])
    for each in items:
        found[0 if is_allowed(each) else 1].append(each)
    return found


def refuse_by_code(
    call: Call[Any], asked: str, answered: str, code_of: Callable[[Any], int]
) -> Answer:
    """Refuse the items of a list that have an error code; the others go on to the handler.

    Arguments: asked, answered: the names of the list in request and response; code_of: returns
        the code of an item.
    Returns: the response if no items are left for the handler.
    """
    request, key = call.request, call.header.api_key
    parts: Dict[int, List[Any]] = {}
    for each in getattr(request, asked):
        parts.setdefault(code_of(each), []).append(each)
    allowed = parts.pop(errors.NONE, [])
    if not parts:
        return None
    items = [
        item
        for code, denied in parts.items()
        for item in items_with(
            changed(request, **{asked: denied}), call.version, key, answered, code
        )
    ]
    for item in items:
        tell(item, text_for(call))
    if not allowed:
        response = answer_with(changed(request, **{asked: []}), call.version, key, errors.NONE)
        setattr(response, answered, items)
        return response
    call.request = changed(request, **{asked: allowed})
    change_response(call, lambda response: getattr(response, answered).extend(items))
    return None


def refuse_items(
    call: Call[Any],
    asked: str,
    answered: str,
    code: int,
    is_allowed: Callable[[Any], bool],
) -> Answer:
    """Refuse the items of a list that are not allowed; otherwise as refuse_by_code()."""
    return refuse_by_code(
        call, asked, answered, lambda each: errors.NONE if is_allowed(each) else code
    )


def refuse_topics(
    call: Call[Any], asked: str, answered: str, operation: int, name: str = 'name'
) -> Answer:
    """Refuse the topics of a list on which the operation is not allowed."""

    def code_of(topic: Any) -> int:
        found = topic_name(call, getattr(topic, name), getattr(topic, 'topic_id', ZERO_UUID))
        return topic_code(call, operation, found)

    return refuse_by_code(call, asked, answered, code_of)


def topic_code(call: Call[Any], operation: int, name: Optional[str]) -> int:
    """Return the error code for an operation on a topic, NONE if it is allowed.

    From 0.10.1 to before 1.0, topics without DESCRIBE were reported as unknown.
    """
    if may_topic(call, operation, name):
        return errors.NONE
    hides = (0, 10, 1) <= call.state.release.version < (1, 0)
    if hides and not may_topic(call, acls.DESCRIBE, name):
        return errors.UNKNOWN_TOPIC_OR_PARTITION
    return errors.TOPIC_AUTHORIZATION_FAILED
