"""The JSON of partitions, and of their offsets or times, in the format of the JVM connector.

Three texts: an assignment, ``{"t":[0,1]}``; offsets or times, ``{"t":{"0":23,"1":-2}}``; and
offsets in a checkpoint, which both connectors read and write, so that a query can change from one
to the other. Topics are written in the order in which a Scala map iterates over them, so that
checkpoints are equal byte by byte. The meaning of -1 and -2 depends on the caller.
"""

from __future__ import annotations

import json
import re
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
    TypeVar,
)

from kafka.errors import InvalidOptionError
from kafka.structs import TopicPartition

__all__ = ['embedded_start', 'offset_tree', 'offsets_json', 'parse_assignment', 'parse_offsets']

ASSIGNMENT = '{"topicA":[0,1],"topicB":[0,1]}'
OFFSETS = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'

_INT32, _INT64 = 2**31, 2**63
_NUMBER = re.compile(r'[+-]?[0-9]{1,19}\Z')
_SHOWN = 80

#: A key with the start of the first batch, in place of a topic: it is not a valid topic name.
_START_KEY = '(the first batch began at %s)'
_PAIRS = '-?[0-9]{1,19}=-?[0-9]{1,19}'
_OF_TOPIC = '[^:;,=]*:%s(?:,%s)*' % (_PAIRS, _PAIRS)
_START = re.compile(r'\(the first batch began at (%s(?:;%s)*)\)\Z' % (_OF_TOPIC, _OF_TOPIC))

Pairs = List[Tuple[str, Any]]
Key = TypeVar('Key')


# ---------------------------------------------------------------- reading


def parse_assignment(text: str, option: str = 'assign') -> Tuple[TopicPartition, ...]:
    """Return the distinct partitions of an assignment, sorted.

    Arguments: text: such as ``{"t":[0,1]}``; option: the name of the option, for errors.
    Raises InvalidOptionError for any other text.
    """
    found: Set[TopicPartition] = set()
    for topic, partitions in _topics(text, option, ASSIGNMENT):
        if not isinstance(partitions, list) or not all(_is_partition(each) for each in partitions):
            raise _unfit(option, ASSIGNMENT, text)
        found.update(TopicPartition(topic, int(each)) for each in partitions)
    return tuple(sorted(found))


def parse_offsets(text: str, option: str = 'offsets') -> Dict[TopicPartition, int]:
    """Return offsets, or times, by partition.

    Arguments: text: such as ``{"t":{"0":23,"1":-2}}``; option: the name of the option, for errors.
    Of equal keys the last one counts. Raises InvalidOptionError for any other text.
    """
    return dict(_offsets(text, option))


def embedded_start(text: str) -> Optional[Dict[TopicPartition, int]]:
    """Return the argument `before` that offsets_json() has written, None if there is none.

    Raises InvalidOptionError for anything but JSON of offsets.
    """
    for key, _ in _topics(text, 'offsets', OFFSETS):
        found = _START.match(key)
        if found:
            return _start_of(found.group(1))
    return _doubled_start(text)


def _start_of(text: str) -> Dict[TopicPartition, int]:
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, _, pairs in (each.partition(':') for each in text.split(';'))
        for partition, offset in (pair.split('=') for pair in pairs.split(','))
    }


def _doubled_start(text: str) -> Optional[Dict[TopicPartition, int]]:
    """Return the start as written by the first releases of this package,
    ``{"00":start,"0":end}``."""
    first: Dict[TopicPartition, int] = {}
    doubled: Set[TopicPartition] = set()
    for each, offset in _offsets(text, 'offsets'):
        if each in first:
            doubled.add(each)
        first.setdefault(each, offset)
    return {each: first[each] for each in sorted(doubled)} or None


def _offsets(text: str, option: str) -> List[Tuple[TopicPartition, int]]:
    """Return all pairs in their order, including those of equal partitions."""
    found = []
    for topic, pairs in _topics(text, option, OFFSETS):
        if not isinstance(pairs, _Object):
            raise _unfit(option, OFFSETS, text)
        for key, offset in pairs:
            partition = int(key) if _NUMBER.match(key) else -1
            if not _is_partition(partition) or not _is_whole(offset, _INT64):
                raise _unfit(option, OFFSETS, text)
            found.append((TopicPartition(topic, partition), int(offset)))
    return found


class _Object(Pairs):
    """A JSON object with all of its keys, including equal ones."""


def _topics(text: str, option: str, example: str) -> Iterable[Tuple[str, Any]]:
    """Return topics with their values; of equal topics the last one counts."""
    try:
        tree = json.loads(text, object_pairs_hook=_Object)
    except (ValueError, RecursionError):
        tree = None
    if not isinstance(tree, _Object):
        raise _unfit(option, example, text)
    return dict(tree).items()


def _is_whole(value: Any, bound: int) -> bool:
    # 1.0 and 1e3 are accepted as well, as by the JVM connector.
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and -bound <= value < bound and value == int(value)


def _is_partition(value: Any) -> bool:
    return _is_whole(value, _INT32) and value >= 0


def _unfit(option: str, example: str, text: str) -> InvalidOptionError:
    told = text if len(text) <= _SHOWN else text[: _SHOWN - 3] + '...'
    return InvalidOptionError('%s must be JSON such as %s, not %s' % (option, example, told))


# ---------------------------------------------------------------- writing


def offsets_json(
    offsets: Mapping[TopicPartition, int], before: Optional[Mapping[TopicPartition, int]] = None
) -> str:
    """Return the JSON that the JVM connector writes into a checkpoint, byte by byte.

    Arguments: before: the start of the first batch for partitions in `offsets`: it is written as
    the name of a topic without partitions, ``{"t":{"0":9},"(the first batch began at t:0=5)":{}}``,
    which the JVM connector, and code that sums the offsets of a progress report, ignores.
    """
    tree = offset_tree(offsets, before)
    return json.dumps(tree, separators=(',', ':'), ensure_ascii=False)


def offset_tree(
    offsets: Mapping[TopicPartition, int], before: Optional[Mapping[TopicPartition, int]] = None
) -> Dict[str, Dict[str, int]]:
    """Return the object that offsets_json() writes, with keys in its order; same arguments."""
    puts = [(str(topic), partition) for topic, partition in sorted(offsets)]
    topics: Dict[str, List[int]] = {}
    for topic, partition in puts:
        topics.setdefault(topic, []).append(partition)
    tree: Dict[str, Dict[str, int]] = {}
    for name in _scala_order([topic for topic, _ in puts], _hash_of_text):
        inner = tree[name] = {}
        for partition in _scala_order(topics[name], lambda each: each):
            inner[str(partition)] = offsets[TopicPartition(name, partition)]
    start = {each: (before or {})[each] for each in sorted(offsets) if each in (before or {})}
    if start:
        tree[_START_KEY % _start_text(start)] = {}
    return tree


def _start_text(start: Mapping[TopicPartition, int]) -> str:
    topics: Dict[str, List[str]] = {}
    for (topic, partition), offset in start.items():
        topics.setdefault(str(topic), []).append('%d=%d' % (partition, offset))
    return ';'.join('%s:%s' % (topic, ','.join(pairs)) for topic, pairs in topics.items())


def _scala_order(puts: Sequence[Key], hashed: Callable[[Key], int]) -> List[Key]:
    """Return keys in the iteration order of scala.collection.mutable.HashMap (2.13).

    Arguments: puts: the keys in the order of insertion, repeated ones included: before each put the
    table doubles if that put could fill three quarters of it.
    """
    size = 16
    places: Dict[Key, int] = {}
    for key in puts:
        if len(places) + 1 >= size * 3 // 4:
            size *= 2
        if key not in places:
            code = hashed(key) & 0xFFFFFFFF
            places[key] = code ^ code >> 16

    def place(key: Key) -> Tuple[int, int]:
        code = places[key]
        # Within a bucket keys are ordered by their hash, as a signed number.
        return code & size - 1, code - (code >> 31 << 32)

    return sorted(places, key=place)


def _hash_of_text(text: str) -> int:
    """Return Java's String.hashCode()."""
    units = text.encode('utf-16-be', 'surrogatepass')
    code = 0
    for at in range(0, len(units), 2):
        code = code * 31 + (units[at] << 8 | units[at + 1]) & 0xFFFFFFFF
    return code
