"""The interface of a SASL mechanism: a generator that yields tokens and is sent the broker's.

Also the adapter for classes with the interface of 2.3. login.py transfers the tokens.
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

    Arguments: settings: how to log in; host: the broker's name, not resolved; now: the time in
    seconds since the epoch.

    Attributes: name: in the SASL protocol; hint: advice for the error text of a rejection, set
    during the exchange; ends_unanswered: whether brokers without SaslAuthenticate do not respond to
    the last token; shows_errors: whether texts of its exceptions may be shown: they contain no
    secret.
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
        """Do the part that may block, such as a request to a third party.

        Called once before exchange(), in another thread if the driver's must not block. Raises
        KafkaError.
        """

    def exchange(self) -> Exchange:
        """Yield the client's tokens and receive the broker's; return after the last one.

        Raises SaslAuthenticationFailedError if the broker fails to authenticate itself.
        """
        raise NotImplementedError

    def refused(self) -> bool:
        """Handle a rejection by the broker; return True if another login at once may succeed."""
        return False


class SaslMechanism:
    """The interface of mechanisms in 2.3 and 3.x, for those that programs register.

    The constructor gets ``host`` and all options as keyword arguments. The broker's response to
    auth_bytes() is passed to receive(), until is_done(); is_authenticated() is the result.
    """

    def __init__(self, **config: Any) -> None:
        pass

    def auth_bytes(self) -> bytes:
        """Return the next token."""
        raise NotImplementedError

    def receive(self, auth_bytes: bytes) -> None:
        """Handle the broker's token."""
        raise NotImplementedError

    def is_done(self) -> bool:
        """Return True after the last token."""
        raise NotImplementedError

    def is_authenticated(self) -> bool:
        """Return True if the login has succeeded."""
        raise NotImplementedError

    def auth_details(self) -> str:
        """Return a description of the authenticated user, for logs."""
        return ''


class _Adapted(Mechanism):
    """Adapter for a registered class with the interface of SaslMechanism."""

    other: Type[Any]

    def exchange(self) -> Exchange:
        """Exchange tokens. Raises SaslAuthenticationFailedError if is_authenticated() is false."""
        mechanism = self.other(**{**self.settings.options, 'host': self.host})
        while not mechanism.is_done():
            answer = yield mechanism.auth_bytes()
            mechanism.receive(answer)
        if not mechanism.is_authenticated():
            raise failed('the mechanism %s gave up' % self.name)


def adapted(name: str, cls: Any) -> Type[Mechanism]:
    """Return a class as a Mechanism, with an adapter if it has the interface of SaslMechanism.

    Raises KafkaConfigurationError for a class with neither interface.
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
