"""Certificates to throw away."""

from __future__ import annotations

import os
import shutil
import ssl
import stat
import subprocess

import pytest

from kafka.testing.security import certificates
from kafka.testing.security.certificates import local_tls, make_certificate
from kafka.testing.security.tls import CertificateError


def without(package, monkeypatch):
    """Let a package be missing."""
    late = certificates.import_late

    def import_late(name):
        if name.startswith(package):
            raise ImportError(name)
        return late(name)

    monkeypatch.setattr(certificates, 'import_late', import_late)


@pytest.fixture(params=['openssl', 'cryptography'])
def way(request, monkeypatch):
    if request.param == 'openssl':
        if shutil.which('openssl') is None:
            pytest.skip('there is no program openssl')
        without('cryptography', monkeypatch)
    else:
        pytest.importorskip('cryptography')
        monkeypatch.setattr(shutil, 'which', lambda name: None)
    return request.param


def test_a_certificate_is_its_own_authority_and_good_for_its_hosts(way, tmp_path):
    certificate, key = make_certificate(str(tmp_path), 'me', ['example.org', '127.0.0.9', '::1'])
    context = ssl.create_default_context(cafile=certificate)
    context.load_cert_chain(certificate, key)
    (found,) = context.get_ca_certs()
    assert found['subject'] == found['issuer'] == ((('commonName', 'me'),),)
    assert sorted(kind for kind, _ in found['subjectAltName']) == [
        'DNS',
        'IP Address',
        'IP Address',
    ]
    assert ('DNS', 'example.org') in found['subjectAltName']
    lasts = ssl.cert_time_to_seconds(found['notAfter']) - ssl.cert_time_to_seconds(
        found['notBefore']
    )
    assert lasts <= 8 * 24 * 3600


@pytest.mark.skipif(os.name != 'posix', reason='modes are for POSIX')
def test_a_key_is_its_owners(way, tmp_path):
    _, key = make_certificate(str(tmp_path))
    assert stat.S_IMODE(os.stat(key).st_mode) == 0o600


def test_where_neither_way_is_it_is_said_what_to_install(tmp_path, monkeypatch):
    without('cryptography', monkeypatch)
    monkeypatch.setattr(shutil, 'which', lambda name: None)
    with pytest.raises(CertificateError, match=r'kafka-evergreen\[tls\].*openssl'):
        make_certificate(str(tmp_path))


def test_what_openssl_says_is_told(tmp_path, monkeypatch):
    without('cryptography', monkeypatch)
    done = subprocess.CompletedProcess([], 1, b'unknown option -addext')
    monkeypatch.setattr(shutil, 'which', lambda name: '/bin/' + name)
    monkeypatch.setattr(subprocess, 'run', lambda *args, **options: done)
    with pytest.raises(CertificateError, match='unknown option -addext'):
        make_certificate(str(tmp_path))


def test_brokers_of_one_process_share_a_certificate():
    assert local_tls() is local_tls('127.0.0.1')
    assert os.path.exists(local_tls().certificate)


def test_a_forked_process_leaves_the_files_where_they_are(tmp_path):
    folder = tmp_path / 'made'
    folder.mkdir()
    certificates._remove(str(folder), os.getpid() + 1)
    assert folder.exists()
    certificates._remove(str(folder), os.getpid())
    assert not folder.exists()
