"""Failed connection attempts as data, and the stages of connecting to a broker.

Used by all clients. An error that is raised while connecting has its stage in ``stage``. Pure.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, TypeVar

from kafka.errors import KafkaError, KafkaTimeoutError

__all__ = [
    'STAGES',
    'Attempt',
    'at_stage',
    'describe',
    'given_up',
    'stage_of',
    'telling',
    'unreachable_text',
]

#: In the order in which a connection goes through them.
STAGES = ('DNS', 'TCP', 'proxy', 'TLS', 'SASL', 'ApiVersions', 'Metadata')

E = TypeVar('E', bound=BaseException)


class Attempt(NamedTuple):
    """One attempt to reach a broker that failed.

    Attributes: address: host and port as configured, or as listed in the metadata; ip: the address
    that the name was resolved to, None if it was not resolved yet; stage: the stage that failed,
    one of STAGES; seconds: the duration; error; hint: the likely cause, or ''.
    """

    address: str
    ip: Optional[str]
    stage: str
    seconds: float
    error: BaseException
    hint: str

    def __str__(self) -> str:
        where = self.address if self.ip in (None, '') else '%s (%s)' % (self.address, self.ip)
        text = '%s: %s after %.3g s: %s' % (where, self.stage, self.seconds, self.error)
        return '%s; %s' % (text, self.hint) if self.hint else text


def at_stage(error: E, stage: str) -> E:
    """Set the ``stage`` of an error, unless it has one; return the error."""
    noted: Any = error
    if getattr(error, 'stage', None) is None:
        noted.stage = stage
    return error


def stage_of(error: BaseException, default: str) -> str:
    """Return the ``stage`` of an error, or the default."""
    return getattr(error, 'stage', None) or default


def hint_for(stage: str, error: BaseException) -> str:
    """Return the likely cause of a failure, '' if it is unknown."""
    if isinstance(error, KafkaTimeoutError) and stage in _SILENT:
        return _SILENT[stage]
    text = ' '.join(map(str, error.args)) if isinstance(error, KafkaError) else str(error)
    for sign, hint in _HINTS:
        if sign[0] in ('', stage) and sign[1] in text:
            return hint
    return ''


_NO_TLS = 'security_protocol PLAINTEXT or SASL_PLAINTEXT?'
_SILENT = {
    'TCP': 'no answer at all: a firewall, or an address without a host?',
    'TLS': 'it accepted the connection and said nothing: ' + _NO_TLS,
    'ApiVersions': 'it accepted the connection and said nothing',
    'Metadata': 'it told its versions and then said nothing',
}
_HINTS = (
    (('', 'an HTTP answer'), 'answered with HTTP: is this the port of a web server?'),
    (('', 'this port wants TLS'), 'looks like TLS: security_protocol SSL or SASL_SSL?'),
    (('', 'speaks TLS'), 'looks like TLS: security_protocol SSL or SASL_SSL?'),
    (('', 'may want TLS'), 'closed without an answer: does the port want TLS or SASL?'),
    (('TLS', 'does not speak TLS'), 'does not speak TLS: ' + _NO_TLS),
    (('TLS', 'closed the connection'), 'may not speak TLS: ' + _NO_TLS),
    (('TLS', 'broke'), 'may not speak TLS: ' + _NO_TLS),
    (
        ('Metadata', 'closed the connection'),
        'answers no client without a login: does the port want one (SASL)?',
    ),
    (('TCP', 'refused'), 'nothing listens there'),
    (('DNS', ''), 'the name is not known here'),
)


def unreachable_text(node_id: Any, attempts: Sequence[Attempt], error: BaseException) -> str:
    """Return why a node cannot be reached, with the address and the stage of the last attempt."""
    return 'node %s cannot be reached: %s' % (node_id, attempts[-1] if attempts else error)


def given_up() -> KafkaTimeoutError:
    """Return the error of an attempt that was in progress when the overall timeout expired."""
    error: Any = KafkaTimeoutError('it was given up before it was ready')
    error.is_given_up = True
    made: KafkaTimeoutError = error
    return made


def telling(attempts: Iterable[Attempt]) -> List[Attempt]:
    """Return the attempts, omitting those that were given up if their address has another one."""
    attempts = list(attempts)
    ended = {each.address for each in attempts if not _is_given_up(each)}
    return [each for each in attempts if not _is_given_up(each) or each.address not in ended]


def _is_given_up(attempt: Attempt) -> bool:
    return getattr(attempt.error, 'is_given_up', False)


def describe(attempts: Any, most: int = 5) -> str:
    """Return the last attempts as text, the latest last; equal ones are merged, with a count."""
    found: Dict[Any, List[Attempt]] = {}
    for each in attempts:
        alike = each.address, each.ip, each.stage, str(each.error), each.hint
        found[alike] = [*found.pop(alike, ()), each]
    shown = [_counted(some) for some in found.values()]
    return '; '.join(shown[-most:])


def _counted(alike: List[Attempt]) -> str:
    text = str(alike[-1])
    return text if len(alike) == 1 else '%s (%d times)' % (text, len(alike))
