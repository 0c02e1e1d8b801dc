"""The security options of ``python -m kafka broker``: users, certificates, super users.

Passwords are read from a file or the environment, never from the command line.
"""

from __future__ import annotations

import argparse
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple, Union

from kafka.testing.security.options import Security
from kafka.testing.security.tls import Tls

#: The environment variable with users and passwords, in the format of the file of ``--users``.
VARIABLE = 'KAFKA_BROKER_USERS'


class SecurityOptions(NamedTuple):
    """The security options of a command line. ``is_tls``: use a temporary certificate."""

    users: str = ''
    mechanisms: str = ''
    is_tls: bool = False
    certificate: str = ''
    key: str = ''
    client_ca: str = ''
    super_users: Tuple[str, ...] = ()

    def arguments(self, environment: Mapping[str, str]) -> Dict[str, Any]:
        """Return the arguments of ``Cluster``. Raises ValueError for options that need others."""
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
            raise ValueError('--certificate and --key require each other')
        if not self.certificate:
            if self.client_ca:
                raise ValueError('--client-ca needs --certificate')
            return self.is_tls
        if self.is_tls:
            raise ValueError('--tls and --certificate exclude each other')
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
            reason = getattr(error, 'strerror', None) or 'not UTF-8 text'
            raise ValueError('--users %s: %s' % (self.users, reason)) from error
        return users_in(text, self.users)


def text_of(value: str) -> str:
    """Return the value of an option, which must not be empty."""
    if not value:
        raise argparse.ArgumentTypeError('expected a value, got none')
    return value


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options to a parser of command lines; their names are those of SecurityOptions."""
    add = parser.add_argument_group('security').add_argument
    text = (
        'require SASL; the file has a NAME:PASSWORD per line, which may be in the environment'
        ' variable %s instead' % VARIABLE
    )
    add('--users', type=text_of, default=argparse.SUPPRESS, metavar='FILE', help=text)
    text = 'the SASL mechanisms (default: those with passwords that the release has)'
    add('--mechanisms', type=text_of, default=argparse.SUPPRESS, metavar='A,B', help=text)
    text = 'serve over TLS with a temporary certificate'
    add('--tls', dest='is_tls', action='store_true', help=text)
    text = 'serve over TLS with this PEM certificate, and --key FILE'
    add('--certificate', type=text_of, default=argparse.SUPPRESS, metavar='FILE', help=text)
    add(
        '--key',
        type=text_of,
        default=argparse.SUPPRESS,
        metavar='FILE',
        help='the private key of the certificate',
    )
    text = 'require client certificates, signed by these authorities'
    add('--client-ca', type=text_of, default=argparse.SUPPRESS, metavar='FILE', help=text)
    text = 'enforce ACLs, and exempt this user from them; may be repeated'
    add(
        '--super-user',
        dest='super_users',
        action='append',
        type=text_of,
        default=argparse.SUPPRESS,
        metavar='NAME',
        help=text,
    )


def users_in(text: str, where: str) -> Dict[str, str]:
    """Return users and passwords; lines that are empty or begin with # are left out.

    Raises ValueError, which contains the number of a bad line but not its text.
    """
    users: Dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith('#'):
            continue
        name, colon, password = line.partition(':')
        if not (name and colon and password):
            raise ValueError('%s, line %d: it must be NAME:PASSWORD' % (where, number))
        users[name] = password
    return users


def greeting(security: Security) -> List[str]:
    """Return the lines about security that are printed at the start."""
    if security.protocol == 'PLAINTEXT':
        return []
    line = '  clients connect with %s' % security.protocol
    if security.mechanisms:
        line += ' and log in by ' + ', '.join(security.mechanisms)
    trusted = [] if security.ca_file is None else ['  they trust %s' % security.ca_file]
    return [line, *trusted]
