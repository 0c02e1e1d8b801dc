"""An authority for a test: certificates that it signs, that have expired, that it calls back.

Owns its folder; the program openssl does the work.
"""

from __future__ import annotations

import datetime
import os
import subprocess

from kafka.testing.security.certificates import LOCAL_HOSTS, make_certificate

SECONDS = 120
KEY_PASSWORD = 'key-secret'

_CONFIG = """[ca]
default_ca = own
[own]
database = index.txt
serial = serial
new_certs_dir = .
certificate = authority.pem
private_key = authority.key
default_md = sha256
default_days = 7
default_crl_days = 7
copy_extensions = copy
unique_subject = no
email_in_dn = no
policy = any
[any]
commonName = supplied
[req]
distinguished_name = empty
[empty]
"""


class Authority:
    """Signs certificates.

    Attributes: certificate: its own, a file; no_one_revoked: its list of those it called back while
    there were none, a file.
    """

    def __init__(self, folder):
        self._folder = str(folder)
        self.certificate, _ = make_certificate(self._folder, 'authority', hosts=())
        for name, text in (('ca.conf', _CONFIG), ('index.txt', ''), ('serial', '1000\n')):
            with open(self.path(name), 'w', encoding='ascii') as file:
                file.write(text)
        self.no_one_revoked = self._list('none.crl')

    def path(self, name):
        """Return where a file of the folder is."""
        return os.path.join(self._folder, name)

    def run(self, *command):
        """Run a program in the folder."""
        done = subprocess.run(
            command,
            cwd=self._folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, '%s: %s' % (command, done.stdout.decode(errors='replace'))

    def sign(self, name, hosts=(), days=7, file=None):
        """Return the files of a certificate and its key.

        Arguments: name: whom it names; hosts: for which it is good; days: how long, below 0 for one
        that has expired; file: what the files are called, the name if None.
        """
        file = file or name
        names = [
            'IP:' + host if ':' in host or host[0].isdigit() else 'DNS:' + host for host in hosts
        ]
        more = ('-addext', 'subjectAltName=' + ','.join(names)) if names else ()
        self.run(
            *('openssl', 'req', '-new', '-nodes', '-newkey', 'ec', '-config', 'ca.conf'),
            *('-pkeyopt', 'ec_paramgen_curve:prime256v1', '-subj', '/CN=' + name, *more),
            *('-keyout', file + '.key', '-out', file + '.csr'),
        )
        now = datetime.datetime.now(datetime.timezone.utc)
        begin, end = now - datetime.timedelta(days=30), now + datetime.timedelta(days=days)
        self.run(
            *('openssl', 'ca', '-config', 'ca.conf', '-batch', '-notext'),
            *('-startdate', begin.strftime('%Y%m%d%H%M%SZ')),
            *('-enddate', end.strftime('%Y%m%d%H%M%SZ')),
            *('-in', file + '.csr', '-out', file + '.pem'),
        )
        return self.path(file + '.pem'), self.path(file + '.key')

    def revoke(self, certificate):
        """Call a certificate back; return the file of the list that says so."""
        self.run('openssl', 'ca', '-config', 'ca.conf', '-revoke', certificate)
        return self._list('revoked.crl')

    def _list(self, name):
        self.run('openssl', 'ca', '-config', 'ca.conf', '-gencrl', '-out', name)
        return self.path(name)

    def encrypted(self, key):
        """Return the file of a key behind KEY_PASSWORD."""
        found = key + '.encrypted'
        self.run(
            *('openssl', 'pkcs8', '-topk8', '-in', key, '-out', found),
            *('-passout', 'pass:' + KEY_PASSWORD),
        )
        return found

    def store(self, certificate, key, password):
        """Return the PKCS12 file of a broker's certificate and key."""
        found = certificate + '.p12'
        self.run(
            *('openssl', 'pkcs12', '-export', '-in', certificate, '-inkey', key, '-name', 'broker'),
            *('-certfile', self.certificate, '-out', found, '-passout', 'pass:' + password),
        )
        return found


def _alternative(host):
    is_address = ':' in host or host[0].isdigit()
    return ('IP:' if is_address else 'DNS:') + host


def broker_certificate(authority, days=7, file='broker'):
    """Return the files of a certificate for brokers on this machine, and of its key."""
    return authority.sign('localhost', LOCAL_HOSTS, days, file)
