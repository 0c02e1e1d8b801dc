"""Whether a program notices a difference, and which differences the documents want.

An error is the same if whoever catches theirs catches ours: each class that theirs derives from is
one that ours has too, by its name. Everything else is the same if it is equal.
"""

from __future__ import annotations

from typing import Any, Dict

from test.stored import stored_records


def is_same(theirs: Any, ours: Any) -> bool:
    """Tell whether ours will do for a program that was written for theirs."""
    if isinstance(theirs, dict) and isinstance(ours, dict) and 'raises' in theirs:
        return 'broke' not in ours and set(theirs['raises']) <= set(ours.get('raises', ()))
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return theirs.keys() == ours.keys() and all(is_same(theirs[k], ours[k]) for k in theirs)
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(theirs) == len(ours) and all(map(is_same, theirs, ours))
    return bool(type(theirs) is type(ours) and theirs == ours)


def stored(cluster: Any, prefix: str, began_ms: int) -> Dict[str, Any]:
    """Return what a promise has stored: {topic: {partition: records}}, without names of its own."""
    found: Dict[str, Any] = {}
    for name, topic in list(cluster.state.topics.items()):
        if name != prefix and not name.startswith(prefix + '-'):
            continue
        for number in range(len(topic.partitions)):
            records = stored_records(cluster, name, number)
            if records:
                place = '%s/%d' % (name[len(prefix) :], number)
                found[place] = [_record(each, began_ms) for each in records]
    return found


def _record(record: Any, began_ms: int) -> Any:
    timestamp = record.timestamp
    if timestamp is not None and timestamp >= began_ms:
        timestamp = 'now'
    return [
        record.offset,
        timestamp,
        *(None if each is None else each.decode('latin-1') for each in (record.key, record.value)),
        [[name, value.decode('latin-1')] for name, value in record.headers or ()],
    ]
