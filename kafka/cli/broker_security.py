"""What ``python -m kafka broker`` is told about security: users, certificates, super users.

Owns the options and where passwords come from, which is never the command line: a file or the
environment.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple, Union

from kafka.cli.run import Usage
from kafka.testing.security.options import Security
from kafka.testing.security.tls import Tls

#: Users and passwords, as in the file of ``--users``.
VARIABLE = 'KAFKA_BROKER_USERS'

USAGE = f"""\
--users FILE         let clients log in over SASL: a NAME:PASSWORD in each line, which may stand in
                     the environment variable {VARIABLE} instead
--mechanisms A,B     of SASL (those with passwords that the release has)
--tls                serve over TLS, with a certificate made to throw away
--certificate FILE   serve over TLS with this certificate, PEM, and --key FILE
--client-ca FILE     demand certificates of clients, which these authorities have signed
--super-user NAME    enforce ACLs, and let this user do everything; may be repeated
"""


class SecurityOptions(NamedTuple):
    """What was said. ``is_tls`` is for a certificate to throw away."""

    users: str = ''
    mechanisms: str = ''
    is_tls: bool = False
    certificate: str = ''
    key: str = ''
    client_ca: str = ''
    super_users: Tuple[str, ...] = ()

    def arguments(self, environment: Mapping[str, str]) -> Dict[str, Any]:
        """Return the arguments of ``Cluster``. Raises Usage for what does not go together."""
        found: Dict[str, Any] = {'tls': self._tls()}
        users = self._users(environment)
        if users is not None:
            found['sasl'] = users
        if self.mechanisms:
            found['mechanisms'] = self.mechanisms.split(',')
        if self.super_users:
            found.update(authorizer=True, super_users=self.super_users)
        return found

    def _tls(self) -> Union[bool, Tls]:
        if bool(self.certificate) != bool(self.key):
            raise Usage('--certificate and --key go together')
        if not self.certificate:
            if self.client_ca:
                raise Usage('--client-ca needs --certificate')
            return self.is_tls
        if self.is_tls:
            raise Usage('--tls makes a certificate, and --certificate has one')
        auth = 'required' if self.client_ca else 'none'
        return Tls(self.certificate, self.key, self.client_ca or None, auth)

    def _users(self, environment: Mapping[str, str]) -> Optional[Dict[str, str]]:
        if not self.users:
            text = environment.get(VARIABLE)
            return None if text is None else users_in(text, VARIABLE)
        try:
            with open(self.users, encoding='utf-8') as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, 'strerror', None) or 'it is no text'
            raise Usage('--users %s: %s' % (self.users, reason)) from error
        return users_in(text, self.users)


def users_in(text: str, where: str) -> Dict[str, str]:
    """Return users and passwords; lines that are empty or begin with # are left out.

    Raises Usage, which tells the number of a bad line and nothing of it.
    """
    users: Dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith('#'):
            continue
        name, colon, password = line.partition(':')
        if not (name and colon and password):
            raise Usage('%s, line %d: it must be NAME:PASSWORD' % (where, number))
        users[name] = password
    return users


def greeting(security: Security) -> List[str]:
    """Return what is told at the start."""
    if security.protocol == 'PLAINTEXT':
        return []
    line = '  clients connect with %s' % security.protocol
    if security.mechanisms:
        line += ' and log in by ' + ', '.join(security.mechanisms)
    trusted = [] if security.ca_file is None else ['  they trust %s' % security.ca_file]
    return [line, *trusted]
