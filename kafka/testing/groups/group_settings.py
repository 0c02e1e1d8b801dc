"""Group configs (KIP-848, KIP-932, KIP-1071): effective values and the check of new ones.

The limits are broker configs. The names of group configs are in config_table.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Optional

from kafka.testing.settings.configs import (
    GROUP,
    ConfigKey,
    broker_config,
    broker_keys,
    broker_values,
    group_keys,
)

if TYPE_CHECKING:
    from kafka.testing.state import ClusterState

_DURATION = re.compile(
    r'by_duration:P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d{1,9}))?S)?)?', re.I
)
_ASSIGNORS = {'streams.assignor.name': 'group.streams.assignors'}


def group_config(state: ClusterState, group_id: str, name: str) -> str:
    """Return the effective value of a group config, '' if it has none.

    Raises KeyError for a config that the release does not have.
    """
    own = state.configs.get((GROUP, group_id), {})
    if name in own:
        return own[name]
    key = group_keys(state.release.name)[name]
    behind = broker_keys(state.release.name).get(key.synonym or '')
    values = [] if behind is None else broker_values(state, behind, state.controller_id)
    return (values[0].value if values else key.default) or ''


def wrong_value(state: ClusterState, name: str, value: str) -> Optional[str]:
    """Return why a group config cannot have a well-formed value, None if it can."""
    if name == 'share.auto.offset.reset' and not _is_reset(value):
        return 'Invalid value %s for %s: latest, earliest or by_duration:P...' % (value[:80], name)
    if name == 'errors.deadletterqueue.topic.name' and value.startswith('__'):
        return 'Invalid value %s for %s: an internal topic is not allowed' % (value[:80], name)
    if name in _ASSIGNORS:
        known = broker_config(state, state.controller_id, _ASSIGNORS[name]).split(',')
        if value not in known:
            return 'Invalid value %s for %s: not in %s' % (value[:80], name, known)
    for low, text in ((True, 'low'), (False, 'high')):
        limit = _limit(state, name, low)
        if limit is not None and (int(value) < limit if low else int(value) > limit):
            return 'The value %s for %s is too %s: the limit is %d' % (value, name, text, limit)
    return None


def _limit(state: ClusterState, name: str, low: bool) -> Optional[int]:
    """Return the smallest or largest value that the brokers allow, None for no limit."""
    kind, _, rest = name.partition('.')
    rest = 'standby.replicas' if rest == 'num.standby.replicas' else rest
    keys = broker_keys(state.release.name)
    limit: Optional[ConfigKey] = keys.get('group.%s.%s.%s' % (kind, 'min' if low else 'max', rest))
    if limit is None:
        return None
    found = int(broker_config(state, state.controller_id, limit.name))
    # The cluster's own setting is allowed even outside the limits of real brokers.
    key = keys.get(group_keys(state.release.name)[name].synonym or '')
    usual = found if key is None else int(broker_config(state, state.controller_id, key.name))
    return min(found, usual) if low else max(found, usual)


def _is_reset(value: str) -> bool:
    return value in ('latest', 'earliest') or reset_duration_ms(value) is not None


def reset_duration_ms(value: str) -> Optional[int]:
    """Return the duration in ``share.auto.offset.reset=by_duration:...``, None without one."""
    match = _DURATION.fullmatch(value.strip())
    if match is None or not any(match.groups()):
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups()[:4])
    fraction_ms = int((match.group(5) or '').ljust(3, '0')[:3])
    return 1000 * (((days * 24 + hours) * 60 + minutes) * 60 + seconds) + fraction_ms
