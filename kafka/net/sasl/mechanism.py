"""The interface of a SASL mechanism: a generator of the client's tokens, sent the broker's.

Also how a class in the shape of 2.3 becomes a mechanism. login.py carries the tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Dict, Generator, Type

from kafka.errors import KafkaConfigurationError, SaslAuthenticationFailedError

if TYPE_CHECKING:
    from kafka.net.security import SaslSettings

__all__ = ['Exchange', 'Mechanism', 'SaslMechanism', 'failed']

Exchange = Generator[bytes, bytes, None]


def failed(text: str) -> SaslAuthenticationFailedError:
    """Return the error of a login that failed."""
    error = SaslAuthenticationFailedError(text)
    error.stage = 'SASL'
    return error


class Mechanism:
    """One login by one mechanism.

    Arguments: settings: how to log in; host: the broker, by the name that was given; now: the time,
    seconds since the epoch.

    Attributes: name: what the broker calls it; hint: what can be said on a refusal, set on the way;
    ends_unanswered: whether brokers without SaslAuthenticate do not answer the last token;
    shows_errors: whether what it fails by may be shown, and has no secret in its text.
    """

    name: ClassVar[str] = ''
    shows_errors: ClassVar[bool] = True

    def __init__(self, settings: SaslSettings, host: str, now: float) -> None:
        self.settings = settings
        self.host = host
        self.now = now
        self.hint = ''
        self.ends_unanswered = False

    def __repr__(self) -> str:
        return '<%s for %s>' % (type(self).__name__, self.host)

    def prepare(self) -> None:
        """Do what may take time, such as asking a third party; called once before exchange().

        A driver whose thread must not wait calls it in another one. Raises KafkaError.
        """

    def exchange(self) -> Exchange:
        """Yield the client's tokens, each answered by the broker's; return when that is all.

        Raises SaslAuthenticationFailedError for what the broker cannot prove.
        """
        raise NotImplementedError

    def refused(self) -> bool:
        """Note that the broker refused; True if a new login, at once, may go otherwise."""
        return False


class SaslMechanism:
    """The shape of mechanisms in 2.3 and 3.x, for those that programs register.

    The constructor gets ``host`` and all options by their names. What the broker answers to
    auth_bytes() goes to receive(), until is_done(); then is_authenticated() decides.
    """

    def __init__(self, **config: Any) -> None:
        pass

    def auth_bytes(self) -> bytes:
        """Return the next token."""
        raise NotImplementedError

    def receive(self, auth_bytes: bytes) -> None:
        """Take the broker's answer."""
        raise NotImplementedError

    def is_done(self) -> bool:
        """Return True if there are no more tokens."""
        raise NotImplementedError

    def is_authenticated(self) -> bool:
        """Return True if it went well."""
        raise NotImplementedError

    def auth_details(self) -> str:
        """Say who logged in, for logs."""
        return ''


class _Adapted(Mechanism):
    """A registered class of the other shape."""

    other: Type[Any]

    def exchange(self) -> Exchange:
        """Let the other one speak. Raises SaslAuthenticationFailedError if it gives up."""
        mechanism = self.other(**{**self.settings.options, 'host': self.host})
        while not mechanism.is_done():
            answer = yield mechanism.auth_bytes()
            mechanism.receive(answer)
        if not mechanism.is_authenticated():
            raise failed('the mechanism %s gave up' % self.name)


def adapted(name: str, cls: Any) -> Type[Mechanism]:
    """Return a mechanism of a name that may have either shape.

    Raises KafkaConfigurationError for a class that has neither.
    """
    if not isinstance(cls, type):
        raise KafkaConfigurationError('a SASL mechanism is a class, not %r' % (cls,))
    if issubclass(cls, Mechanism):
        return cls
    missing = [
        each
        for each in ('auth_bytes', 'receive', 'is_done', 'is_authenticated')
        if not callable(getattr(cls, each, None))
    ]
    if missing:
        raise KafkaConfigurationError(
            'the SASL mechanism %s has no method %s' % (cls.__name__, ', '.join(missing))
        )
    attributes: Dict[str, Any] = {'name': name, 'other': cls, '__doc__': cls.__doc__}
    return type(cls.__name__, (_Adapted,), attributes)
