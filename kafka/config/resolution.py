"""Resolution of options: from the keyword arguments of a program to the values of a client.

It finds names, deprecated and unknown ones included, and fills in the defaults of a dialect. The
rows are in the tables, the checks of single values in ``kinds.py``, the rules between options in
``contradictions.py``.
"""

from __future__ import annotations

import difflib
import logging
import os
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Tuple

from kafka.config.consumer_table import CONSUMING, OF_0_9_5
from kafka.config.contradictions import settle
from kafka.config.kinds import Unfit
from kafka.config.option import FACES, TOWER, Face, Option, Table
from kafka.config.producer_table import PRODUCING
from kafka.config.secrets import Secret, hide, hide_key, hide_login, shown
from kafka.config.security_table import SECURITY
from kafka.config.shared_table import RELEASED, SHARED
from kafka.errors import InvalidOptionError, InvalidOptionTypeError

log = logging.getLogger('kafka.config')

DIALECT_SWITCH = 'KAFKA_LEGACY_DIALECT'

#: The rows of all clients except the one of 0.9.5, by name.
OPTIONS: Table = {**SHARED, **SECURITY, **PRODUCING, **CONSUMING}

#: Names of 0.9.5 that were removed, and the present option with the same effect, if any.
RENAMED: Mapping[str, Optional[str]] = {
    'fetch_wait_max_ms': 'fetch_max_wait_ms',
    'fetch_message_max_bytes': 'max_partition_fetch_bytes',
    'deserializer_class': 'value_deserializer',
    'auto_commit_enable': 'enable_auto_commit',
    'socket_timeout_ms': 'request_timeout_ms',
    'auto_commit_interval_messages': None,
    'refresh_leader_backoff_ms': 'retry_backoff_ms',
}

_default_dialect: List[Optional[str]] = [None]


class Options(Dict[str, Any]):
    """All options of a client, with their values; a dict whose repr shows no secret.

    Attributes: face; given: the names that the program gave, deprecated ones under their new names.
    """

    def __init__(self, face: Face, values: Mapping[str, Any], given: FrozenSet[str]) -> None:
        super().__init__(values)
        self.face = face
        self.given = given

    def __repr__(self) -> str:
        items = ('%r: %s' % (name, _repr(name, value)) for name, value in self.items())
        return '{%s}' % ', '.join(items)

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.face, dict(self), self.given)


def _repr(name: str, value: Any) -> str:
    if name == 'sasl_oauth_token_provider' and value is not None:
        return '<%s>' % type(value).__name__
    # A value that was set later has not been converted to a type that masks itself.
    hidden = name in _SECRETS and isinstance(value, (str, bytes))
    return repr(Secret()) if hidden else repr(value)


_SECRETS = frozenset(row.name for row in OPTIONS.values() if row.kind.is_secret)


_SECRETS_OF_ALL = _SECRETS.union(*(row.old for row in OPTIONS.values() if row.kind.is_secret))


def hidden(given: Mapping[str, Any]) -> Dict[str, Any]:
    """Return options as they were given, with equal values whose repr shows no secret."""
    return {name: _hidden(name, value) for name, value in given.items()}


def _hidden(name: str, value: Any) -> Any:
    if name in _SECRETS_OF_ALL:
        return hide(value)
    if isinstance(value, str) and '://' in value:
        return hide_login(value)
    return hide_key(value)


def set_dialect(release: Optional[str]) -> None:
    """Use the defaults of a release for all clients made from now on; None: the usual defaults.

    The option ``dialect`` takes precedence over this call, and this call over the environment
    variable KAFKA_LEGACY_DIALECT.
    Raises InvalidOptionError unless it is a release from 0.9.5 to 3.x.
    """
    _default_dialect[0] = _dialect(release, 'dialect')


def _dialect(release: Any, where: str) -> Optional[str]:
    try:
        return RELEASED.convert(release)  # type: ignore[no-any-return]
    except Unfit:
        text = '%s must be %s, not %s' % (where, RELEASED.text, shown(release))
        raise InvalidOptionError(text) from None


def current_dialect() -> Optional[str]:
    """Return the dialect of clients without the option: set_dialect()'s, or the environment's."""
    release = os.environ.get(DIALECT_SWITCH)
    if _default_dialect[0] is not None or not release:
        return _default_dialect[0]
    return _dialect(release, 'environment variable ' + DIALECT_SWITCH)


def options_of(face: Face) -> Table:
    """Return the rows that a face has, by name."""
    if face == TOWER:
        security = {name: row for name, row in SECURITY.items() if TOWER.letter in row.faces}
        return {**OF_0_9_5, **security}
    return {name: row for name, row in OPTIONS.items() if face.letter in row.faces}


def defaults(face: Face, dialect: Optional[str] = None) -> Dict[str, Any]:
    """Return all options of a face with their defaults, for ``DEFAULT_CONFIG``."""
    return {name: row.default_for(face, dialect) for name, row in options_of(face).items()}


def with_changed(
    given: Mapping[str, Any], defaults_now: Mapping[str, Any], before: Mapping[str, Any]
) -> Dict[str, Any]:
    """Return options as given, preceded by those that a program has changed in a DEFAULT_CONFIG.

    In clients of 1.x and later each instance starts from a copy of its class's DEFAULT_CONFIG, so
    that a subclass, or a program that writes into it, sets options for all instances.

    Arguments: defaults_now: the DEFAULT_CONFIG of the class; before: as this package made it.
    """
    changed = {
        name: value
        for name, value in defaults_now.items()
        if name not in before or (value is not before[name] and value != before[name])
    }
    return {**changed, **given}


def resolve(face: Face, given: Mapping[str, Any]) -> Options:
    """Return all options of a face: checked, converted to the form of the clients, complete.

    Raises: InvalidOptionError, a KafkaConfigurationError, ValueError and AssertionError, for
    unknown names, invalid values, and options that contradict each other;
    InvalidOptionTypeError, which is a TypeError as well, for values of a wrong type. Neither shows
    secrets. A deprecated name is accepted with a warning in the log.
    """
    rows = options_of(face)
    named = _rename(face, rows, given)
    checked = {name: convert(rows[name], value) for name, value in named.items()}
    release = named.get('api_version')
    if isinstance(release, str) and release != 'auto':
        log.warning('api_version as text is deprecated: use the tuple %r', checked['api_version'])
    dialect = checked.get('dialect') or current_dialect()
    values = {name: row.default_for(face, dialect) for name, row in rows.items()}
    values.update(checked)
    if 'dialect' in rows:
        values['dialect'] = dialect
    options = Options(face, values, frozenset(checked))
    settle(options)
    return options


def _rename(face: Face, rows: Table, given: Mapping[str, Any]) -> Dict[str, Any]:
    """Return options under their present names; unknown ones are refused, or ignored if lenient."""
    old = {name: row.name for row in rows.values() for name in row.old}
    named, unknown = {}, []
    for name, value in given.items():
        if name in old:
            is_given = old[name] in given
            log.warning(
                'option %s is deprecated%s: use %s', name, ', ignored' * is_given, old[name]
            )
            if not is_given:
                named[old[name]] = value
        elif name in rows:
            named[name] = value
        else:
            unknown.append(name)
    if unknown and not face.is_lenient:
        told = ', '.join(_guess(face, rows, name) for name in sorted(unknown, key=str))
        raise InvalidOptionError('Unrecognized configs: %s' % told)
    return named


def _guess(face: Face, rows: Table, name: str) -> str:
    """Return an unknown name with a hint at what may have been meant."""
    text = str(name)
    hint = _hint(face, rows, text)
    return '%s (%s)' % (text, hint) if hint else text


def _hint(face: Face, rows: Table, name: str) -> str:
    dotted = {each: row.name for row in rows.values() for each in _dotted(row)}
    if name in dotted:
        return 'write %s' % dotted[name]
    if RENAMED.get(name) in rows:
        return 'since 1.0: %s' % RENAMED[name]
    elsewhere = [
        each.title for each in FACES if name in options_of(each) and each not in (face, TOWER)
    ]
    if elsewhere:
        return 'an option of %s' % ', '.join(elsewhere)
    for unit in ('_ms', '_bytes'):
        if name + unit in rows:
            return 'did you mean %s?' % (name + unit)
    near = difflib.get_close_matches(name.lower().replace('.', '_').replace('-', '_'), rows, 1)
    return 'did you mean %s?' % near[0] if near else ''


def _dotted(row: Option) -> Tuple[str, ...]:
    return row.dotted if row.java_name is None else (row.java_name, *row.dotted)


def convert(row: Option, value: Any) -> Any:
    """Return a value in the form that the clients use.

    Raises: as resolve(), for values that the row does not accept.
    """
    try:
        return row.kind.convert(value)
    except Unfit as error:
        hint = str(error)
        kind = InvalidOptionTypeError if error.is_type else InvalidOptionError
        what = 'that' if row.kind.is_secret else shown(value)
        text = '%s must be %s, not %s' % (row.name, row.kind.text, what)
        raise kind(text + (': ' + hint if hint else '')) from None
