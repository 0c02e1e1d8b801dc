"""SASL GSSAPI (RFC 4752): Kerberos, by the optional package gssapi (extra ``gssapi``).

Creates the tokens from a Kerberos ticket. Tickets, keytabs and the address of the KDC are
configured in the system (krb5.conf, kinit, KRB5_CLIENT_KTNAME).
"""

from __future__ import annotations

from typing import Any, NoReturn

from kafka.errors import InvalidOptionError
from kafka.internals.lazy_imports import import_late
from kafka.net.sasl.mechanism import Exchange, Mechanism, failed

__all__ = ['Gssapi']

# RFC 4752: no security layer, which needs no maximum buffer size.
_NO_LAYER = 1
_OFFER_BYTES = 4


class Gssapi(Mechanism):
    """A login with a Kerberos ticket."""

    name = 'GSSAPI'
    _context: Any = None
    _first = b''

    def prepare(self) -> None:
        """Get a ticket for the broker from the KDC.

        Raises KafkaConfigurationError without the package, SaslAuthenticationFailedError without a
        ticket.
        """
        package = _package()
        try:
            self._context = package.SecurityContext(
                name=self._service(package),
                mech=package.MechType.kerberos,
                usage='initiate',
            )
            self._first = self._context.step(None) or b''
        except package.exceptions.GSSError as error:
            self._fail(error)

    def exchange(self) -> Exchange:
        """Authenticate with the ticket, and negotiate no security layer."""
        if self._context is None:
            self.prepare()
        package, context = _package(), self._context
        try:
            answer = yield self._first
            while not context.complete:
                # The response is empty if the broker need not authenticate itself.
                token = context.step(answer)
                if context.complete and token is None:
                    token = b''
                answer = yield token or b''
            offer = context.unwrap(answer).message
            if len(offer) != _OFFER_BYTES or not offer[0] & _NO_LAYER:
                raise failed('the broker demands a security layer of Kerberos; use TLS for that')
            self.ends_unanswered = True
            yield context.wrap(bytes([_NO_LAYER, 0, 0, 0]), False).message
        except package.exceptions.GSSError as error:
            self._fail(error)

    def _service(self, package: Any) -> Any:
        """Return the principal of the broker: the configured one, or that of service and host."""
        settings = self.settings
        if settings.kerberos_name is not None:
            if not isinstance(settings.kerberos_name, str):
                return settings.kerberos_name
            return package.Name(settings.kerberos_name, package.NameType.kerberos_principal)
        host = settings.kerberos_domain_name or self.host
        service = '%s@%s' % (settings.kerberos_service_name, host)
        return package.Name(service, package.NameType.hostbased_service)

    def _fail(self, error: Any) -> NoReturn:
        text = ' '.join(str(error).split())
        raise failed(
            'no login by Kerberos at %s as service %s: %s; see klist, and the options'
            ' sasl_kerberos_service_name and sasl_kerberos_domain_name'
            % (self.host, self.settings.kerberos_service_name, text)
        ) from error


def _package() -> Any:
    try:
        return import_late('gssapi')
    except ImportError as error:
        raise InvalidOptionError(
            'sasl_mechanism=GSSAPI needs the package gssapi, and the Kerberos libraries of the'
            ' system: pip install kafka-evergreen[gssapi] (%s)' % error
        ) from error
