"""Rules between options: which contradict each other, and which defaults are adjusted.

They are applied to complete, converted values. An option that the program gave is used or refused;
a default is adjusted to what was given. The dependencies of the security options are checked in
:mod:`kafka.net.security`.
"""

from __future__ import annotations

import difflib
import logging
import math
from typing import Any, Callable, Dict, List, Mapping, Tuple

from kafka.config.option import CONSUMER, PRODUCER
from kafka.errors import InvalidOptionError

log = logging.getLogger('kafka.config')

#: The first brokers with idempotent producers (KIP-98) and max_poll_interval_ms (KIP-62).
IDEMPOTENT_SINCE = (0, 11)
POLL_INTERVAL_SINCE = (0, 10, 1)
SESSION_45_SINCE = (3, 0)

#: (base, maximum) of each back-off and time-out.
_PAIRS = (
    ('reconnect_backoff_ms', 'reconnect_backoff_max_ms'),
    ('retry_backoff_ms', 'retry_backoff_max_ms'),
    ('socket_connection_setup_timeout_ms', 'socket_connection_setup_timeout_max_ms'),
)


def settle(options: Any) -> None:
    """Resolve or refuse contradictions between options, in place; options: an Options.

    Raises InvalidOptionError naming all options that contradict each other.
    """
    for base, most in _PAIRS:
        if base in options and most in options:
            _settle_pair(options, base, most)
    for rule in _RULES.get(options.face, ()):
        rule(options)


def settle_release(options: Any, api_version: Tuple[int, ...]) -> None:
    """Adjust options to the release of the brokers, now that it is known, in place.

    Raises InvalidOptionError when the brokers are too old for an option that was given.
    """
    options['api_version'] = api_version
    for rule in _RELEASE_RULES.get(options.face, ()):
        rule(options)


def _settle_pair(options: Any, base: str, most: str) -> None:
    if options[base] <= options[most]:
        # If only the base is given, the back-off does not grow (as before KIP-580).
        if base == 'reconnect_backoff_ms' and base in options.given and most not in options.given:
            options[most] = options[base]
    elif {base, most} <= options.given:
        _refuse('%s must not be more than %s, %s > %s', base, most, options[base], options[most])
    elif base in options.given:
        options[most] = options[base]
    else:
        options[base] = options[most]


def _refuse(text: str, *details: Any) -> None:
    raise InvalidOptionError(text % details)


# ---------------------------------------------------------------- producer


def _settle_idempotence(options: Any) -> None:
    """Disable idempotence if it was not requested and another option excludes it."""
    given = options.given
    is_transactional = options['transactional_id'] is not None
    is_asked_for = is_transactional or 'enable_idempotence' in given
    if not options['enable_idempotence']:
        if is_transactional and 'enable_idempotence' in given:
            _refuse('transactional_id needs idempotence, but enable_idempotence is False')
        if not is_transactional:
            return
    conflicts = idempotence_conflicts(options)
    if not conflicts:
        options['enable_idempotence'] = True
        options['acks'] = -1
        options['retries'] = options['retries'] or math.inf
    elif is_asked_for:
        name = 'transactional_id' if is_transactional else 'enable_idempotence'
        _refuse('%s needs an idempotent producer, which requires: %s', name, '; '.join(conflicts))
    else:
        options['enable_idempotence'] = False
        # On old brokers only INFO: the program cannot change that by an option.
        level = logging.INFO if conflicts == _old_brokers(options) else logging.WARNING
        log.log(level, 'The producer is not idempotent: idempotence requires that %s', conflicts[0])


def idempotence_conflicts(options: Any) -> List[str]:
    """Return the conditions of idempotence that do not hold, each with the name of its option."""
    conflicts = []
    if 'acks' in options.given and options['acks'] != -1:
        conflicts.append("acks is 'all', not %d" % options['acks'])
    if 'retries' in options.given and not options['retries']:
        conflicts.append('retries is more than 0')
    in_flight = options['max_in_flight_requests_per_connection']
    if in_flight > 5:
        conflicts.append('max_in_flight_requests_per_connection is at most 5, not %d' % in_flight)
    return conflicts + _old_brokers(options)


def _old_brokers(options: Any) -> List[str]:
    """Return the unmet condition if brokers do not support idempotent producers."""
    version = options['api_version']
    if version is None or version >= IDEMPOTENT_SINCE:
        return []
    dotted = '.'.join(str(part) for part in version)
    who = 'api_version says' if 'api_version' in options.given else 'these are of'
    return ['brokers are of 0.11 or later, but %s %s' % (who, dotted)]


def _settle_delivery(options: Any) -> None:
    """Ensure that delivery_timeout_ms leaves time to linger and to send a batch once."""
    limit, linger = options['delivery_timeout_ms'], options['linger_ms']
    least = linger + options['request_timeout_ms']
    if limit >= least:
        return
    if 'delivery_timeout_ms' not in options.given:
        options['delivery_timeout_ms'] = least
    elif limit <= linger:
        _refuse('delivery_timeout_ms must be more than linger_ms, %s <= %s', limit, linger)
    elif 'request_timeout_ms' not in options.given:
        options['request_timeout_ms'] = limit - linger
    else:
        _refuse(
            'delivery_timeout_ms must be at least linger_ms + request_timeout_ms, %s < %s + %s',
            limit,
            linger,
            options['request_timeout_ms'],
        )


def _check_compression(options: Any) -> None:
    if options['compression_level'] is not None and options['compression_type'] in (None, 'snappy'):
        _refuse(
            'compression_level has no effect with compression_type=%r', options['compression_type']
        )


# ---------------------------------------------------------------- consumer


def _check_offset_reset(options: Any) -> None:
    word = options['auto_offset_reset']
    if not isinstance(word, str):
        _refuse("auto_offset_reset must be 'earliest', 'latest' or another word, not %r", word)
    renamed = {'smallest': 'earliest', 'largest': 'latest'}.get(word)
    if renamed:
        log.warning('auto_offset_reset=%s is deprecated: use %s', word, renamed)
        options['auto_offset_reset'] = renamed
    elif word not in ('earliest', 'latest'):
        near = difflib.get_close_matches(word, ['earliest', 'latest'], 1)
        if near:
            log.warning('auto_offset_reset=%s means: raise. Did you mean %s?', word, near[0])


def _settle_session(options: Any) -> None:
    """Adjust to old brokers, which have a single time-out for members and a maximum for it."""
    given, version = options.given, options['api_version']
    session, poll = 'session_timeout_ms', 'max_poll_interval_ms'
    if version is not None and version < SESSION_45_SINCE and session not in given:
        options[session] = min(options[session], 30000)
    if version is not None and version < POLL_INTERVAL_SINCE:
        if session not in given and poll in given:
            options[session] = options[poll]
        elif poll not in given:
            options[poll] = options[session]
    interval = options['heartbeat_interval_ms']
    is_member = options['group_id'] is not None
    if interval > options[session] or is_member and interval == options[session]:
        _refuse(
            'heartbeat_interval_ms must be less than session_timeout_ms, %s >= %s',
            interval,
            options[session],
        )


def _settle_requests(options: Any) -> None:
    """Ensure fetch_max_wait_ms < request_timeout_ms < connections_max_idle_ms."""
    version, request = options['api_version'], 'request_timeout_ms'
    if options['group_id'] is not None and version is not None and version < POLL_INTERVAL_SINCE:
        # Such a broker answers JoinGroup only after the longest session timeout in the group.
        if options[request] <= options['session_timeout_ms']:
            if request in options.given:
                _refuse(
                    'request_timeout_ms must be more than session_timeout_ms on brokers before'
                    ' 0.10.1, %s <= %s',
                    options[request],
                    options['session_timeout_ms'],
                )
            options[request] = options['session_timeout_ms'] + 10000
    wait, idle = options['fetch_max_wait_ms'], options['connections_max_idle_ms']
    if not wait < options[request] < (idle if idle >= 0 else math.inf):
        _refuse(
            'fetch_max_wait_ms < request_timeout_ms < connections_max_idle_ms must hold,'
            ' got %s, %s, %s',
            wait,
            options[request],
            idle,
        )


def _settle_consumer(options: Any) -> None:
    if options['group_instance_id'] is not None and options['group_id'] is None:
        _refuse('group_instance_id needs group_id')
    if options['consumer_timeout_ms'] < 0:
        options['consumer_timeout_ms'] = math.inf
    most = options['fetch_max_bytes'] + options['max_partition_fetch_bytes']
    options['receive_message_max_bytes'] = max(options['receive_message_max_bytes'], most)


_RULES: Mapping[Any, Tuple[Callable[[Any], None], ...]] = {
    PRODUCER: (_settle_idempotence, _settle_delivery, _check_compression),
    CONSUMER: (_check_offset_reset, _settle_session, _settle_requests, _settle_consumer),
}
_RELEASE_RULES: Dict[Any, Tuple[Callable[[Any], None], ...]] = {
    PRODUCER: (_settle_idempotence,),
    CONSUMER: (_settle_session, _settle_requests),
}
