"""A Kerberos realm of its own for a test: a KDC of the distribution's packages, on a high port.

Owns its folder, its process and its keys; nothing of the system's configuration is touched.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time

from servers.cluster import HOST, free_ports

REALM = 'TEST.LOCAL'
SECONDS = 30
PROGRAMS = ('krb5kdc', 'kdb5_util', 'kadmin.local', 'kinit')

_KRB5 = """[libdefaults]
default_realm = {realm}
dns_lookup_kdc = false
dns_lookup_realm = false
dns_canonicalize_hostname = false
rdns = false
udp_preference_limit = 1
default_ccache_name = FILE:{folder}/ccache
[realms]
{realm} = {{
  kdc = {host}:{port}
}}
[domain_realm]
localhost = {realm}
"""
_KDC = """[kdcdefaults]
kdc_listen = {host}:{port}
kdc_tcp_listen = {host}:{port}
[realms]
{realm} = {{
  database_name = {folder}/principal
  key_stash_file = {folder}/stash
  max_life = 1h
}}
[logging]
kdc = FILE:{folder}/kdc.log
"""


def program(name):
    """Return the path of a program, None if it is not installed."""
    return shutil.which(name) or shutil.which(name, path='/usr/sbin:/usr/local/sbin')


def missing():
    """Say what is missing for a realm, None if nothing is."""
    lacking = [name for name in PROGRAMS if program(name) is None]
    return 'no %s: install krb5-kdc, krb5-admin-server, krb5-user' % lacking[0] if lacking else None


class Realm:
    """A running KDC with the principals ``kafka/localhost`` and ``alice``; use it with ``with``.

    Attributes: conf: its krb5.conf; service_keys, user_keys: files of keys; environment: what a
    client's process needs.
    """

    def __init__(self, folder):
        self.folder = str(folder)
        self.conf = os.path.join(self.folder, 'krb5.conf')
        self.service_keys = os.path.join(self.folder, 'kafka.keytab')
        self.user_keys = os.path.join(self.folder, 'alice.keytab')
        self.environment = {
            'KRB5_CONFIG': self.conf,
            'KRB5_KDC_PROFILE': os.path.join(self.folder, 'kdc.conf'),
            'KRB5CCNAME': 'FILE:' + os.path.join(self.folder, 'ccache'),
        }
        self._kdc = None

    def __enter__(self):
        (port,) = free_ports(1)
        values = {'realm': REALM, 'host': HOST, 'port': port, 'folder': self.folder}
        for name, text in (('krb5.conf', _KRB5), ('kdc.conf', _KDC)):
            with open(os.path.join(self.folder, name), 'w', encoding='ascii') as file:
                file.write(text.format(**values))
        self.run('kdb5_util', 'create', '-s', '-r', REALM, '-P', 'master')
        for name, keys in (('kafka/localhost', self.service_keys), ('alice', self.user_keys)):
            self.run('kadmin.local', '-r', REALM, '-q', 'addprinc -randkey ' + name)
            self.run('kadmin.local', '-r', REALM, '-q', 'ktadd -k %s %s' % (keys, name))
        self._kdc = subprocess.Popen(
            [program('krb5kdc'), '-n', '-r', REALM],
            env={**os.environ, **self.environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + SECONDS
        while True:
            with socket.socket() as attempt:
                if attempt.connect_ex((HOST, port)) == 0:
                    return self
            assert self._kdc.poll() is None and time.monotonic() < end, 'the KDC does not start'
            time.sleep(0.05)

    def __exit__(self, *_):
        self._kdc.kill()
        self._kdc.wait()

    def run(self, name, *arguments):
        """Run one of the programs in this realm."""
        done = subprocess.run(
            [program(name), *arguments],
            env={**os.environ, **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, '%s: %s' % (name, done.stdout.decode(errors='replace'))

    def log_in(self):
        """Get a ticket for alice."""
        self.run('kinit', '-k', '-t', self.user_keys, 'alice')
