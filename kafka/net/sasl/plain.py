"""SASL PLAIN (RFC 4616): user and password in one token."""

from __future__ import annotations

from kafka.errors import InvalidOptionError
from kafka.net.sasl.mechanism import Exchange, Mechanism

__all__ = ['Plain']


class Plain(Mechanism):
    """User and password as they are; safe over TLS alone."""

    name = 'PLAIN'

    def exchange(self) -> Exchange:
        """Send the only token there is. Raises KafkaConfigurationError for what none can hold."""
        user, password = self.settings.username or '', self.settings.password or ''
        if '\0' in user + password:
            raise InvalidOptionError(
                'sasl_plain_username and sasl_plain_password cannot contain the character 0'
            )
        self.hint = 'see sasl_plain_username and sasl_plain_password'
        yield encoded('\0%s\0%s' % (user, password))


def encoded(text: str) -> bytes:
    """Return a text with a secret as UTF-8. Raises KafkaConfigurationError, which shows nothing."""
    try:
        return text.encode('utf-8')
    except UnicodeEncodeError:
        # Its own text and its ``object`` would show what was to be encoded.
        raise InvalidOptionError(
            'sasl_plain_username or sasl_plain_password is no text that UTF-8 has'
        ) from None
