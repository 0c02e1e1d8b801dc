"""SASL PLAIN (RFC 4616): user name and password in one token."""

from __future__ import annotations

from kafka.errors import InvalidOptionError
from kafka.net.sasl.mechanism import Exchange, Mechanism

__all__ = ['Plain']


class Plain(Mechanism):
    """Sends user name and password in clear text; safe only with TLS."""

    name = 'PLAIN'

    def exchange(self) -> Exchange:
        """Send the only token.

        Raises KafkaConfigurationError if user name or password cannot be part of a token.
        """
        user, password = self.settings.username or '', self.settings.password or ''
        if '\0' in user + password:
            raise InvalidOptionError(
                'sasl_plain_username and sasl_plain_password cannot contain the character 0'
            )
        self.hint = 'see sasl_plain_username and sasl_plain_password'
        yield encoded('\0%s\0%s' % (user, password))


def encoded(text: str) -> bytes:
    """Encode a text with a secret as UTF-8.

    Raises KafkaConfigurationError, whose text does not show the secret.
    """
    try:
        return text.encode('utf-8')
    except UnicodeEncodeError:
        # Not chained: the text and ``object`` of the UnicodeError would show the secret.
        raise InvalidOptionError(
            'sasl_plain_username or sasl_plain_password cannot be encoded in UTF-8'
        ) from None
