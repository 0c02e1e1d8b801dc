"""Say where two recordings of one script differ.

Owns the walk over two answers and the order of what has none. What may differ in every answer was
taken out when it was written down (answers.py); what is known to differ in one is in deviations.py.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from test.differential.deviations import Deviation
from test.differential.runner import Recording

#: By which field elements of a list are told apart, the first that they have; a broker is free to
#: order them otherwise.
IDENTITY = (
    'api_key group_id transactional_id resource_name key name topic topic_name user feature'
    ' node_id broker_id replica_id partition_index partition index partition_id entity_type'
    ' mechanism member_id topic_id'
).split()
ACL_FIELDS = (
    'resource_type resource_name pattern_type principal host operation permission_type'.split()
)
ABSENT = '<absent>'
TEXTS = ('error_message', 'batch_index_error_message', 'status_detail')


class Difference(NamedTuple):
    """``where`` is the case and step, ``path`` the field; ``real`` and ``ours`` what they hold."""

    where: str
    path: str
    real: Any
    ours: Any

    def __str__(self) -> str:
        return '%s: %s: real %s, embedded %s' % (
            self.where,
            self.path,
            _short(self.real),
            _short(self.ours),
        )


def _short(value: Any) -> str:
    text = json.dumps(value, sort_keys=True)
    return text if len(text) <= 160 else text[:157] + '...'


def compare(real: Recording, ours: Recording) -> List[Difference]:
    """Return all differences in the order of the script."""
    found = []
    for where in [*real, *(name for name in ours if name not in real)]:
        if where not in real or where not in ours:
            sides = [side[where]['outcome'] if where in side else ABSENT for side in (real, ours)]
            found.append(Difference(where, 'outcome', *sides))
        elif real[where]['outcome'] != ours[where]['outcome']:
            outcomes = real[where]['outcome'], ours[where]['outcome']
            found.append(Difference(where, 'outcome', *outcomes))
        else:
            pair = real[where].get('answer'), ours[where].get('answer')
            found += [Difference(where, *rest) for rest in _walk('', *pair)]
    return found


def _walk(path: str, real: Any, ours: Any) -> Iterator[Tuple[str, Any, Any]]:
    if isinstance(real, dict) and isinstance(ours, dict):
        for name in [*real, *(name for name in ours if name not in real)]:
            inner = '%s.%s' % (path, name) if path else name
            pair = real.get(name, ABSENT), ours.get(name, ABSENT)
            if name in TEXTS:
                # What Java says is not for programs; whether something is said may be.
                pair = _is_said(pair[0]), _is_said(pair[1])
            yield from _walk(inner, *pair)
    elif isinstance(real, list) and isinstance(ours, list):
        yield from _walk_lists(path, real, ours)
    elif real != ours:
        yield path, real, ours


def _is_said(text: Any) -> Any:
    return '<text>' if isinstance(text, str) and text and text != ABSENT else text


def _walk_lists(path: str, real: List[Any], ours: List[Any]) -> Iterator[Tuple[str, Any, Any]]:
    """Compare lists by the names of their elements, else by position."""
    named_real, named_ours = _named(real), _named(ours)
    for name in [*named_real, *(name for name in named_ours if name not in named_real)]:
        inner = '%s[%s]' % (path, name)
        yield from _walk(inner, named_real.get(name, ABSENT), named_ours.get(name, ABSENT))


def _named(elements: List[Any]) -> Dict[str, Any]:
    """Return the elements by what tells them apart, with a number where that is not enough."""
    named: Dict[str, Any] = {}
    if not any(isinstance(each, (dict, list)) for each in elements):
        elements = sorted(elements, key=_order)
    for position, element in enumerate(elements):
        name = (_identity(element) if isinstance(element, dict) else '') or '#%d' % position
        while name in named:
            name += "'"
        named[name] = element
    return named


def _identity(element: Dict[str, Any]) -> str:
    """Return what an element of a list is called, '' for none."""
    if 'permission_type' in element:  # an ACL is all that it says
        return ' '.join(str(element[key]) for key in ACL_FIELDS if key in element)
    if 'entity' in element:
        return ' '.join(sorted(' '.join(map(str, each.values())) for each in element['entity']))
    if 'offset' in element or 'base_offset' in element and 'magic' in element:
        return ''  # stored records have their order
    if 'resource_type' in element and 'resource_name' in element:
        return '%s %s' % (element['resource_type'], element['resource_name'])
    for key in IDENTITY:
        if element.get(key) is not None:
            return repr(element[key]) if element[key] == '' else str(element[key])
    return ''


def _order(value: Any) -> Tuple[str, Any]:
    return type(value).__name__, value if value is not None else 0


def explanation(
    difference: Difference, version: Tuple[int, ...], deviations: List[Deviation]
) -> Optional[Deviation]:
    """Return the first listed deviation that explains a difference in a release, None for none."""
    return next((each for each in deviations if each.explains(difference, version)), None)


def explained(
    difference: Difference, version: Tuple[int, ...], deviations: List[Deviation]
) -> bool:
    """Tell whether a listed deviation explains a difference in a release."""
    return explanation(difference, version, deviations) is not None
