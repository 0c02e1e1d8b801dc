"""TLS on the client's side, with a server of the standard library: bytes handed to and fro."""

from __future__ import annotations

import glob
import os
import pathlib
import shutil
import ssl
import subprocess
import tempfile

import pytest

from kafka.errors import KafkaConfigurationError
from kafka.net.failures import TlsCertificateError, TlsError
from kafka.net.security import TlsSettings
from kafka.net.tls import TlsClient, make_context, shown_file
from kafka.testing.security.certificates import local_tls, make_certificate

NEW_KEY = ('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1')
needs_openssl = pytest.mark.skipif(shutil.which('openssl') is None, reason='no program openssl')


def openssl(folder, *arguments, stdin=b''):
    done = subprocess.run(
        ['openssl', *arguments], cwd=str(folder), input=stdin, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


class Pair:
    """A client and a server. Arguments: settings: of the client; server: its context; host."""

    def __init__(self, settings, server=None, host='localhost'):
        self.client = TlsClient(make_context(settings), host)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = server or local_tls().context()
        self.server = context.wrap_bio(self.incoming, self.outgoing, server_side=True)

    def to_client(self):
        data = self.outgoing.read()
        if data:
            self.client.receive(data)

    def to_server(self):
        self.incoming.write(self.client.outgoing())

    def shake_hands(self):
        for _ in range(10):
            is_done = self.client.handshake()
            self.to_server()
            try:
                self.server.do_handshake()
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError:
                self.to_client()
                self.client.handshake()
                self.client.read()
                raise AssertionError('the client noticed nothing') from None
            else:
                if is_done:
                    return self
            self.to_client()
        raise AssertionError('the handshake does not end')


def trusting(**options):
    return TlsSettings(cafile=local_tls().certificate, **options)


# ---------------------------------------------------------------- the way it should be


@pytest.mark.parametrize('host', ['localhost', '127.0.0.1', '::1', 'localhost.'])
def test_bytes_go_both_ways(host):
    pair = Pair(trusting(), host=host).shake_hands()
    assert pair.client.version == 'TLSv1.3' and 'open' in repr(pair.client)
    pair.client.write(b'question')
    pair.client.write(b'')
    sent = pair.client.outgoing()
    assert b'question' not in sent
    pair.incoming.write(sent)
    assert pair.server.read(100) == b'question'
    pair.server.write(b'answer')
    pair.to_client()
    assert pair.client.read() == b'answer'
    assert pair.client.read() == b'' and not pair.client.is_ended


def test_more_than_a_record_is_read_in_pieces_of_what_was_asked():
    pair = Pair(trusting()).shake_hands()
    pair.server.write(b'x' * 50_000)
    pair.to_client()
    parts = iter(lambda: pair.client.read(10_000), b'')
    assert b''.join(parts) == b'x' * 50_000


def test_a_goodbye_ends_it():
    pair = Pair(trusting()).shake_hands()
    pair.client.close()
    pair.to_server()
    assert pair.server.read(10) == b''
    pair.server.unwrap()
    pair.to_client()
    assert pair.client.read() == b'' and pair.client.is_ended
    assert pair.client.read() == b''


def test_a_stream_that_is_cut_off_ends_too():
    pair = Pair(trusting()).shake_hands()
    pair.client.receive(b'')
    assert pair.client.read() == b'' and pair.client.is_ended


def test_closing_before_the_handshake_says_nothing():
    client = TlsClient(make_context(trusting()), 'localhost')
    client.close()
    assert client.outgoing() == b''


def test_nothing_below_1_2_is_offered():
    context = make_context(TlsSettings())
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.verify_mode is ssl.CERT_REQUIRED and context.check_hostname


def test_a_context_of_the_program_stays_as_it_is():
    context = ssl.create_default_context()
    assert make_context(TlsSettings(context=context)) is context


# ---------------------------------------------------------------- who is believed


def broken(settings, server=None, host='localhost'):
    """Return the error of a handshake."""
    with pytest.raises(TlsError) as caught:
        Pair(settings, server, host).shake_hands()
    assert caught.value.stage == 'TLS'
    return caught.value


def test_a_certificate_of_nobody_that_is_trusted():
    error = broken(TlsSettings())
    assert isinstance(error, TlsCertificateError) and not error.retriable
    assert 'give the authority as ssl_cafile' in str(error)


def test_a_certificate_for_another_name(tmp_path):
    certificate, key = make_certificate(str(tmp_path), 'x', hosts=['elsewhere'])
    server = local_tls()._replace(certificate=certificate, key=key).context()
    for host in ('localhost', '127.0.0.1'):
        error = broken(TlsSettings(cafile=certificate), server, host)
        assert isinstance(error, TlsCertificateError) and 'is for another name' in str(error)
    Pair(TlsSettings(cafile=certificate, check_hostname=False), server).shake_hands()


@pytest.fixture(scope='module')
def authority(tmp_path_factory):
    """An authority that has made out certificates: good, expired, of the future, revoked."""
    if shutil.which('openssl') is None:
        pytest.skip('no program openssl')
    folder = tmp_path_factory.mktemp('authority')
    (folder / 'index').write_text('')
    (folder / 'serial').write_text('01')
    (folder / 'crlnumber').write_text('01')
    (folder / 'ca.cnf').write_text(
        '[ca]\ndefault_ca=d\n[d]\ndatabase=index\nserial=serial\ncrlnumber=crlnumber\n'
        'new_certs_dir=.\ndefault_md=sha256\ndefault_days=7\ndefault_crl_days=7\npolicy=p\n'
        'copy_extensions=copy\ncertificate=ca.pem\nprivate_key=ca.key\n'
        '[p]\ncommonName=supplied\n'
    )
    openssl(folder, *'req -x509 -nodes -days 7 -subj /CN=authority'.split(), *NEW_KEY,
            *'-keyout ca.key -out ca.pem'.split())  # fmt: skip
    for name, dates in (
        ('good', []),
        ('expired', ['-startdate', '20200101000000Z', '-enddate', '20200102000000Z']),
        ('early', ['-startdate', '20400101000000Z', '-enddate', '20400102000000Z']),
        ('revoked', []),
    ):
        openssl(folder, *'req -new -nodes'.split(), *NEW_KEY, '-addext',
                'subjectAltName=DNS:localhost', '-subj', '/CN=' + name,
                '-keyout', name + '.key', '-out', name + '.csr')  # fmt: skip
        openssl(folder, *'ca -batch -config ca.cnf -notext -in'.split(), name + '.csr',
                '-out', name + '.pem', *dates)  # fmt: skip
    openssl(folder, *'ca -config ca.cnf -revoke revoked.pem'.split())
    openssl(folder, *'ca -config ca.cnf -gencrl -out crl.pem'.split())
    return folder


def server_of(authority, name):
    files = str(authority / (name + '.pem')), str(authority / (name + '.key'))
    return local_tls()._replace(certificate=files[0], key=files[1]).context()


@pytest.mark.parametrize(
    ('name', 'text'), [('expired', 'has expired: renew it'), ('early', 'is not valid yet')]
)
def test_a_certificate_out_of_its_time(authority, name, text):
    settings = TlsSettings(cafile=str(authority / 'ca.pem'))
    assert text in str(broken(settings, server_of(authority, name)))


@pytest.mark.parametrize('as_text', [False, True])
def test_a_revoked_certificate(authority, as_text):
    crl = authority / 'crl.pem'
    settings = TlsSettings(
        cafile=str(authority / 'ca.pem'), crlfile=crl.read_text() if as_text else str(crl)
    )
    Pair(settings, server_of(authority, 'good')).shake_hands()
    assert 'was revoked (ssl_crlfile)' in str(broken(settings, server_of(authority, 'revoked')))
    Pair(settings._replace(crlfile=None), server_of(authority, 'revoked')).shake_hands()


def test_a_list_of_another_authority(authority):
    settings = trusting(crlfile=str(authority / 'crl.pem'))
    assert 'ssl_crlfile has no list of the authority' in str(broken(settings))


# ---------------------------------------------------------------- who we are


@pytest.fixture(scope='module')
def alice(tmp_path_factory):
    return make_certificate(str(tmp_path_factory.mktemp('alice')), 'alice', hosts=())


def demanding(alice, **options):
    context = local_tls()._replace(client_ca=alice[0], client_auth='required').context()
    for name, value in options.items():
        setattr(context, name, value)
    return context


def test_a_client_shows_its_certificate(alice):
    pair = Pair(trusting(certfile=alice[0], keyfile=alice[1]), demanding(alice)).shake_hands()
    assert pair.server.getpeercert()['subject'] == ((('commonName', 'alice'),),)


@pytest.mark.parametrize('kind', [str, bytes])
def test_pem_text_stands_for_files_and_leaves_none(alice, kind, monkeypatch, tmp_path):
    authority = local_tls().certificate  # in a folder of its own, if it is the first of the process
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
    texts = []
    for path in (*alice, authority):
        with open(path, 'rb') as file:
            data = file.read()
        texts.append(data if kind is bytes else data.decode())
    settings = TlsSettings(certfile=texts[0], keyfile=texts[1], cafile=texts[2])
    Pair(settings, demanding(alice)).shake_hands()
    assert glob.glob(str(tmp_path / '*')) == []
    assert 'BEGIN' not in repr(settings) and shown_file(texts[1]) == 'PEM text'


def test_one_file_may_hold_both(alice, tmp_path):
    both = tmp_path / 'both.pem'
    both.write_bytes(b''.join(pathlib.Path(path).read_bytes() for path in alice))
    Pair(trusting(certfile=str(both)), demanding(alice)).shake_hands()


@pytest.mark.parametrize('version', [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_server_that_demands_a_certificate(alice, version):
    error = broken(trusting(), demanding(alice, maximum_version=version))
    assert 'ssl_certfile' in str(error)


@pytest.mark.parametrize('version', [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_server_that_does_not_know_our_authority(alice, tmp_path, version):
    certificate, key = make_certificate(str(tmp_path), 'stranger', hosts=())
    settings = trusting(certfile=certificate, keyfile=key)
    error = broken(settings, demanding(alice, maximum_version=version))
    assert isinstance(error, TlsCertificateError) and 'ssl_certfile' in str(error)


@needs_openssl
def test_a_key_with_a_password(alice, tmp_path):
    locked = tmp_path / 'locked.key'
    openssl(tmp_path, 'pkey', '-in', alice[1], '-aes256', '-passout', 'pass:Canary', '-out',
            str(locked))  # fmt: skip
    settings = trusting(certfile=alice[0], keyfile=str(locked))
    for password in ('Canary', b'Canary', lambda: 'Canary'):
        make_context(settings._replace(password=password))
    with pytest.raises(KafkaConfigurationError, match='is encrypted: give its ssl_password'):
        make_context(settings)
    with pytest.raises(
        KafkaConfigurationError, match='or ssl_password is not that of the key'
    ) as e:
        make_context(settings._replace(password='Canary2'))
    assert 'Canary' not in str(e.value)


# ---------------------------------------------------------------- settings that cannot be used


def unusable(match, **options):
    with pytest.raises(KafkaConfigurationError, match=match):
        make_context(TlsSettings(**options))


def test_what_cannot_be_read_is_named(alice, tmp_path):
    empty = tmp_path / 'empty.pem'
    empty.write_text('')
    unusable("ssl_cafile: cannot use '/no/where': No such file", cafile='/no/where')
    unusable('ssl_cafile: cannot use .*empty.pem.* does not hold a cert', cafile=str(empty))
    unusable('ssl_cafile: cannot use PEM text', cafile='-----BEGIN CERTIFICATE-----\nxx')
    unusable('ssl_certfile and ssl_keyfile: .*No such file', certfile=alice[0], keyfile='/no')
    unusable('ssl_certfile: cannot use', certfile=alice[0])
    unusable('ssl_certfile and ssl_keyfile: cannot', certfile=alice[0], keyfile=str(empty))
    unusable('ssl_crlfile: cannot use', crlfile='/no/where')
    unusable('ssl_crlfile: cannot use', crlfile='-----BEGIN X509 CRL-----\nxx')
    unusable("ssl_ciphers='NOPE' names no cipher", ciphers='NOPE')


def test_a_key_of_another_certificate(alice):
    unusable('a key that belongs to the certificate', certfile=alice[0], keyfile=local_tls().key)


def test_temporary_files_are_for_their_owner_alone_and_go_also_after_an_error(
    alice, monkeypatch, tmp_path
):
    modes = []
    real = os.unlink

    def unlink(path):
        modes.append(os.stat(path).st_mode & 0o777)
        real(path)

    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
    monkeypatch.setattr(os, 'unlink', unlink)
    unusable('ssl_certfile', certfile='-----BEGIN CERTIFICATE-----\n', keyfile='-----BEGIN X')
    assert modes == [0o600, 0o600]


def test_ciphers_are_those_of_the_settings():
    context = make_context(TlsSettings(ciphers='ECDHE-RSA-AES256-GCM-SHA384'))
    names = {each['name'] for each in context.get_ciphers() if each['protocol'] == 'TLSv1.2'}
    assert names == {'ECDHE-RSA-AES256-GCM-SHA384'}


def test_no_cipher_in_common():
    server = local_tls().context()
    server.maximum_version = ssl.TLSVersion.TLSv1_2
    error = broken(trusting(ciphers='DHE-RSA-AES256-SHA'), server)
    assert 'agree on no cipher (ssl_ciphers)' in str(error)


# ---------------------------------------------------------------- peers that speak no TLS


@pytest.mark.parametrize(
    ('data', 'text'),
    [
        (b'HTTP/1.1 400 Bad Request\r\n', 'an HTTP answer'),
        (b'SSH-2.0-OpenSSH\r\n', 'the greeting of an SSH server'),
        (b'\x00\x00\x00\x06\x00\x00\x00\x00', 'bytes that are not TLS (00000006...)'),
        (b'', 'So does a listener without TLS'),
        (b'\x15\x03\x01\x00\x02\x02\x46', 'share no version of TLS'),
        (b'\x15\x03\x01\x00\x02\x02\x28', 'agree on no cipher'),
        (b'\x15\x03\x01\x00\x02\x02\x50', 'so do brokers that demand a certificate'),
    ],
)
def test_what_a_peer_sends_in_place_of_a_handshake(data, text):
    client = TlsClient(make_context(trusting()), 'broker')
    assert not client.handshake()
    client.receive(data)
    with pytest.raises(TlsError) as caught:
        client.handshake()
    assert text in str(caught.value) and 'broker' in str(caught.value)


def test_bytes_that_are_changed_on_their_way():
    pair = Pair(trusting()).shake_hands()
    pair.server.write(b'answer')
    data = bytearray(pair.outgoing.read())
    data[-1] ^= 1
    pair.client.receive(bytes(data))
    with pytest.raises(TlsError, match='BAD_RECORD_MAC'):
        pair.client.read()


@pytest.mark.parametrize('host', ['x' * 300, 'a..b', '\ud800'])
def test_a_host_that_can_be_in_no_certificate(host):
    try:
        client = TlsClient(make_context(trusting()), host)
    except TlsError as error:
        assert 'can be no name' in str(error)
    else:
        assert not client.handshake()
