"""Self-signed certificates for tests, made when they are needed.

Made with the package ``cryptography`` if it is installed (``kafka-evergreen[tls]``), else with the
program ``openssl``. They are valid for a week, and their keys are readable by their owner only.
"""

from __future__ import annotations

import atexit
import datetime
import ipaddress
import os
import shutil
import subprocess
import tempfile
from functools import lru_cache
from typing import Any, Iterable, List, Tuple

from kafka.internals.lazy_imports import import_late
from kafka.testing.security.tls import CertificateError, Tls

DAYS = 7
LOCAL_HOSTS = ('localhost', '127.0.0.1', '::1')
OPENSSL_SECONDS = 60


def make_certificate(
    folder: str, name: str = 'localhost', hosts: Iterable[str] = LOCAL_HOSTS
) -> Tuple[str, str]:
    """Make a self-signed certificate; return the paths of it and of its key.

    Arguments: folder: where they are written, as NAME.pem and NAME.key; name: the common name;
    hosts: host names and addresses for which it is valid, none for a client's.
    Raises CertificateError, with what to install, if neither package nor program is available;
    OSError.
    """
    paths = os.path.join(folder, name + '.pem'), os.path.join(folder, name + '.key')
    try:
        x509 = import_late('cryptography.x509')
    except ImportError:
        _by_program(paths, name, list(hosts))
    else:
        _by_package(x509, paths, name, list(hosts))
    return paths


def local_tls(host: str = '') -> Tls:
    """Return a certificate for brokers on this machine, the same one in the whole process.

    Arguments: host: the host of the brokers, if it is not one of LOCAL_HOSTS.
    Raises as make_certificate().
    """
    return _made('' if host in LOCAL_HOSTS else host)


@lru_cache(maxsize=None)
def _made(host: str) -> Tls:
    folder = tempfile.mkdtemp(prefix='kafka-testing-')
    atexit.register(_remove, folder, os.getpid())
    return Tls(*make_certificate(folder, hosts=filter(None, [*LOCAL_HOSTS, host])))


def _remove(folder: str, owner: int) -> None:
    """Delete a folder when the process that made it ends, not when a forked one does."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _by_program(paths: Tuple[str, str], name: str, hosts: List[str]) -> None:
    program = shutil.which('openssl')
    if program is None:
        raise CertificateError(
            'no certificate can be made: install the package cryptography'
            ' (pip install kafka-evergreen[tls]) or the program openssl, or give the files of one'
        )
    command = [program, 'req', '-x509', '-nodes', '-sha256', '-days', str(DAYS)]
    command += ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']
    command += ['-subj', '/CN=' + name, '-out', paths[0], '-keyout', paths[1]]
    if hosts:
        kinds = [('IP:' if _is_address(host) else 'DNS:') + host for host in hosts]
        command += ['-addext', 'subjectAltName=' + ','.join(kinds)]
    _touch_private(paths[1])
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=OPENSSL_SECONDS
    )
    if done.returncode:
        raise CertificateError(
            'openssl makes no certificate: %s' % done.stdout.decode(errors='replace')
        )


def _by_package(x509: Any, paths: Tuple[str, str], name: str, hosts: List[str]) -> None:
    hashes = import_late('cryptography.hazmat.primitives.hashes')
    curves = import_late('cryptography.hazmat.primitives.asymmetric.ec')
    forms = import_late('cryptography.hazmat.primitives.serialization')
    key = curves.generate_private_key(curves.SECP256R1())
    now = datetime.datetime.now(datetime.timezone.utc)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    if hosts:
        names = [
            x509.IPAddress(ipaddress.ip_address(host)) if _is_address(host) else x509.DNSName(host)
            for host in hosts
        ]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    certificate = builder.sign(key, hashes.SHA256())
    _touch_private(paths[1])
    with open(paths[1], 'wb') as file:
        file.write(
            key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption())
        )
    with open(paths[0], 'wb') as file:
        file.write(certificate.public_bytes(forms.Encoding.PEM))


def _touch_private(path: str) -> None:
    """Create an empty file that only its owner can read."""
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600))
