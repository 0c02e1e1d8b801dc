"""The SASL login on a session: the order of its requests, and the errors of rejections.

SaslHandshake, then SaslAuthenticate (KIP-152) or, to brokers before 1.0, frames that contain only
the token (KIP-43); the same again before the session expires (KIP-368). The mechanisms create the
tokens; the connect conversation (kafka/net/connect.py) runs these generators::

    prepare(mechanism)                                     # may block
    steps = authenticate(session, mechanism)
    data = next(steps)
    while True:
        write(data)
        event = ...                                        # the session's next of is_step(event)
        data = steps.send(event)                           # None if the broker has closed

StopIteration carries the result, a LoggedIn, whose ``unsent`` has to be written. The driver must
not send other requests during the login; in a re-authentication it may receive responses to earlier
requests.
"""

from __future__ import annotations

import random
from typing import Generator, NamedTuple, NoReturn, Optional, Type

from kafka.errors import (
    BrokerResponseError,
    IllegalSaslStateError,
    KafkaError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
    error_for_code,
)
from kafka.net.failures import SaslError
from kafka.net.sasl.mechanism import Exchange, Mechanism, failed
from kafka.protocol.api import ApiKey
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafka.protocol.session import Event, LoginAnswered, Session, State, VersionsNegotiated

__all__ = [
    'MOST_LOGINS',
    'ClosedAtVersions',
    'LoggedIn',
    'Login',
    'authenticate',
    'authenticate_bare',
    'is_step',
    'prepare',
    'renewal_seconds',
    'takes_time',
]

#: When to re-authenticate, as fractions of the session lifetime (KIP-368).
RENEW_EARLIEST, RENEW_LATEST = 0.85, 0.95
#: More steps than any mechanism needs: a malicious broker could continue for ever.
MAX_STEPS = 32
#: Maximum number of logins at one address, each on a new connection, if the error of one says that
#: another form of the login may succeed.
MOST_LOGINS = 3


class ClosedAtVersions(SaslError):
    """The broker closed the connection at ApiVersions, as 0.9 brokers do on SASL listeners."""


class LoggedIn(NamedTuple):
    """The result of a successful login."""

    lifetime_ms: int  # session lifetime; 0: unlimited
    unsent: bytes  # still to be written; the broker does not respond to it


Login = Generator[bytes, Optional[Event], LoggedIn]


def is_step(event: Event) -> bool:
    """Return True if an event is the response that a login waits for."""
    return isinstance(event, (LoginAnswered, VersionsNegotiated))


def renewal_seconds(lifetime_ms: int, part: Optional[float] = None) -> Optional[float]:
    """Return the seconds after which to re-authenticate, None for never.

    Arguments: part: fraction of the session lifetime; None for a random one within the bounds of
    KIP-368.
    """
    if lifetime_ms <= 0:
        return None
    return lifetime_ms / 1000 * (part or random.uniform(RENEW_EARLIEST, RENEW_LATEST))


def prepare(mechanism: Mechanism) -> None:
    """Call Mechanism.prepare(), which may block: call it in another thread if yours must not.

    Raises the KafkaError of the mechanism; SaslError for any other exception of a registered
    mechanism.
    """
    try:
        mechanism.prepare()
    except KafkaError:
        raise
    except Exception as error:
        raise _broken(mechanism, error) from error


def takes_time(mechanism: Mechanism) -> bool:
    """Return True if the mechanism has a prepare(), which may block."""
    return type(mechanism).prepare is not Mechanism.prepare


def _step(mechanism: Mechanism, steps: Exchange, answer: Optional[bytes]) -> Optional[bytes]:
    """Return the next token of a mechanism, None after the last one. Raises as prepare()."""
    try:
        return next(steps) if answer is None else steps.send(answer)
    except StopIteration:
        return None
    except KafkaError:
        raise
    except Exception as error:
        raise _broken(mechanism, error) from error


def _broken(mechanism: Mechanism, error: Exception) -> SaslError:
    told = repr(error)
    if not mechanism.shows_errors:
        told = '%s (its text is in __cause__)' % type(error).__name__
    return SaslError('the SASL mechanism %s failed: %s' % (mechanism.name, told))


def authenticate(session: Session, mechanism: Mechanism) -> Login:
    """Log in on a new session, or on one whose versions are known, such as to re-authenticate.

    On a new session this sends ApiVersions in version 0, whose response has no features: send
    ApiVersions again after the login.

    Raises, with ``stage`` 'SASL': SaslAuthenticationFailedError if the credentials are rejected, or
    if the broker cannot prove that it knows them; UnsupportedSaslMechanismError, with the enabled
    mechanisms; IllegalSaslStateError; SaslError if the broker closes the connection or sends an
    unexpected response.
    """
    if session.state is State.FRESH:
        event = yield session.negotiate(version=0)
        if event is None:
            raise ClosedAtVersions(
                'the broker closed the connection when asked for its versions; this port may want'
                ' TLS (security_protocol=SASL_SSL), or belong to a broker before 0.10'
            )
    version = 1 if ApiKey.SASL_AUTHENTICATE in session.versions.ranges else 0
    session.begin_login()
    handshake = SaslHandshakeRequest(mechanism=mechanism.name)
    _check_handshake((yield session.send(handshake, version=version)), mechanism)
    steps = _walk if version else _walk_bare
    result = yield from steps(session, mechanism)
    session.end_login()
    return result


def authenticate_bare(session: Session, mechanism: Mechanism) -> Login:
    """Log in to a 0.9 broker, which supports only GSSAPI, without SaslHandshake.

    The session has adopted the versions of the broker. Raises as authenticate().
    """
    session.begin_login()
    result = yield from _walk_bare(session, mechanism)
    session.end_login()
    return result


def _check_handshake(event: Optional[Event], mechanism: Mechanism) -> None:
    if event is None:
        raise SaslError(
            'the broker closed the connection at the SASL handshake: is this a listener with SASL?'
        )
    answer = event.answer if isinstance(event, LoginAnswered) else None
    if not isinstance(answer, SaslHandshakeResponse):
        raise SaslError('the broker answered the SASL handshake with something else')
    if answer.error_code == UnsupportedSaslMechanismError.errno:
        _raise(
            UnsupportedSaslMechanismError,
            'the broker does not offer %s on this listener, but %s: see sasl_mechanism'
            % (mechanism.name, ', '.join(answer.mechanisms) or 'nothing'),
        )
    if answer.error_code == IllegalSaslStateError.errno:
        _raise(
            IllegalSaslStateError,
            'the broker takes no login here: this listener has no SASL'
            ' (security_protocol must be PLAINTEXT or SSL), or logins that do not end',
        )
    if answer.error_code:
        _raise(error_for_code(answer.error_code), 'the answer to the SASL handshake')


def _raise(cls: Type[BrokerResponseError], text: str) -> NoReturn:
    error = cls(text)
    error.stage = 'SASL'
    raise error


def _walk(session: Session, mechanism: Mechanism) -> Login:
    """Exchange the tokens of a mechanism in SaslAuthenticate requests."""
    steps = mechanism.exchange()
    token = _step(mechanism, steps, None)
    for _ in range(MAX_STEPS):
        event = yield session.send(SaslAuthenticateRequest(auth_bytes=token or b''))
        if event is None:
            raise _closed(mechanism)
        answer = event.answer if isinstance(event, LoginAnswered) else None
        if not isinstance(answer, SaslAuthenticateResponse):
            raise SaslError('the broker answered a step of the login with something else')
        if answer.error_code:
            raise _refused(answer, mechanism)
        token = _step(mechanism, steps, bytes(answer.auth_bytes))
        if token is None:
            return LoggedIn(answer.session_lifetime_ms, b'')
    raise SaslError('the login by %s did not end after %d steps' % (mechanism.name, MAX_STEPS))


def _walk_bare(session: Session, mechanism: Mechanism) -> Login:
    """Exchange the tokens of a mechanism in frames that contain nothing else."""
    steps = mechanism.exchange()
    token = _step(mechanism, steps, None)
    for _ in range(MAX_STEPS):
        data = session.send_token(token or b'')
        if mechanism.ends_unanswered:
            return LoggedIn(0, data)
        event = yield data
        if event is None:
            # Brokers before 1.0 close the connection if the credentials are wrong.
            error = _closed(mechanism)
            raise _with_retry(failed(' '.join(map(str, error.args))), mechanism)
        answer = event.answer if isinstance(event, LoginAnswered) else None
        if not isinstance(answer, bytes):
            raise SaslError('the broker answered a step of the login with something else')
        token = _step(mechanism, steps, answer)
        if token is None:
            return LoggedIn(0, b'')
    raise SaslError('the login by %s did not end after %d steps' % (mechanism.name, MAX_STEPS))


def _closed(mechanism: Mechanism) -> SaslError:
    return SaslError(
        'the broker closed the connection during the login by %s: credentials that it refuses, or'
        ' a mechanism that it is not set up for%s' % (mechanism.name, _hint(mechanism))
    )


def _refused(answer: SaslAuthenticateResponse, mechanism: Mechanism) -> KafkaError:
    text = 'the broker refused the login by %s' % mechanism.name
    if answer.error_message:
        text += ': ' + answer.error_message[:500]
    text += _hint(mechanism)
    if answer.error_code == SaslAuthenticationFailedError.errno:
        return _with_retry(failed(text), mechanism)
    error = error_for_code(answer.error_code)(text)
    error.stage = 'SASL'
    return error


def _with_retry(
    error: SaslAuthenticationFailedError, mechanism: Mechanism
) -> SaslAuthenticationFailedError:
    error.login_again = mechanism.refused()
    return error


def _hint(mechanism: Mechanism) -> str:
    return '; ' + mechanism.hint if mechanism.hint else ''
