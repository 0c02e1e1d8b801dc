"""TLS around a connection: a client of the standard library, bytes handed to and fro."""

from __future__ import annotations

import ssl

import pytest

from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.negotiation import BrokerVersions
from kafka.protocol.session import NEED_DATA, Role, Session
from kafka.testing.security.certificates import local_tls, make_certificate
from kafka.testing.security.sasl.login import Sasl
from kafka.testing.security.tls import CertificateError, Tls, distinguished_name
from test.testing.drive import Driver, Wire
from test.testing.security.sasl.clients import log_in

METADATA = MetadataRequest(topics=[])


class TlsClient:
    """One connection; ``ask`` sends a request and returns its answer."""

    def __init__(self, driver, context, name='localhost'):
        self.wire = Wire()
        self.end = driver.brokers[0].connect(self.wire)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname=name)
        self.session = Session(Role.CLIENT, 'client')
        self.session.adopt(BrokerVersions(dict(driver.state.release.served)))

    def move(self):
        """Let what both sides have written arrive."""
        sent = self.outgoing.read()
        if sent:
            self.end.receive_data(sent)
        self.incoming.write(bytes(self.wire.written))
        self.wire.written.clear()

    def shake_hands(self):
        """Open it. Raises ssl.SSLError."""
        for _ in range(10):
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                self.move()
            else:
                self.move()
                return
        raise AssertionError('the handshake does not end')

    def read(self):
        """Return what has arrived, b'' for a goodbye, None for nothing."""
        try:
            return self.tls.read(1 << 20)
        except ssl.SSLWantReadError:
            return None

    def ask(self, request):
        self.tls.write(self.session.send(request))
        self.move()
        while True:
            data = self.read()
            if not data:
                break
            self.session.receive_data(data)
        event = self.session.next_event()
        return None if event is NEED_DATA else event.response


@pytest.fixture(scope='module')
def files():
    return local_tls()


def driver_with(tls, **settings):
    driver = Driver(**settings)
    driver.state.tls_context = tls.context()
    return driver


def client_context(files):
    return ssl.create_default_context(cafile=files.certificate)


@pytest.mark.parametrize('name', ['localhost', '127.0.0.1'])
def test_requests_are_answered_behind_tls(files, name):
    client = TlsClient(driver_with(files), client_context(files), name)
    client.shake_hands()
    assert client.ask(METADATA).brokers
    assert client.ask(METADATA).brokers
    assert (client.end.principal, client.end.is_closed) == ('User:ANONYMOUS', False)


def test_what_is_written_is_not_readable(files):
    driver = driver_with(files)
    driver.state.create_topic('topic-with-a-name')
    client = TlsClient(driver, client_context(files))
    client.shake_hands()
    client.tls.write(client.session.send(MetadataRequest(topics=None)))
    client.end.receive_data(client.outgoing.read())
    assert client.wire.written
    assert b'topic-with-a-name' not in client.wire.written


def test_bytes_may_come_one_by_one(files):
    client = TlsClient(driver_with(files), client_context(files))
    client.shake_hands()
    client.tls.write(client.session.send(METADATA))
    for byte in client.outgoing.read():
        client.end.receive_data(bytes([byte]))
    client.move()
    client.session.receive_data(client.read())
    assert client.session.next_event().response.brokers


@pytest.mark.parametrize('data', [b'GET / HTTP/1.1\r\n\r\n', b'\0\0\0\x10\0\x03\0\0' + b'\0' * 12])
def test_who_speaks_no_tls_is_disconnected(files, data):
    driver = driver_with(files)
    wire = Wire()
    end = driver.brokers[0].connect(wire)
    end.receive_data(data)
    assert end.is_closed
    assert wire.is_closed
    assert not driver.state.control.failures


def test_a_client_that_does_not_trust_goes_away(files):
    client = TlsClient(driver_with(files), ssl.create_default_context())
    with pytest.raises(ssl.SSLCertVerificationError):
        client.shake_hands()
    client.move()
    assert client.wire.is_closed


@pytest.mark.parametrize('is_open', [False, True])
def test_a_client_that_goes_is_noticed(files, is_open):
    client = TlsClient(driver_with(files), client_context(files))
    if is_open:
        client.shake_hands()
    client.end.receive_data(b'')
    assert client.end.is_closed
    assert client.wire.is_closed


def test_a_goodbye_closes_the_connection(files):
    client = TlsClient(driver_with(files), client_context(files))
    client.shake_hands()
    with pytest.raises(ssl.SSLWantReadError):
        client.tls.unwrap()
    client.move()
    assert client.wire.is_closed
    client.tls.unwrap()


def test_the_broker_says_goodbye_when_it_closes(files):
    client = TlsClient(driver_with(files), client_context(files))
    client.shake_hands()
    client.end.close()
    client.move()
    assert client.read() == b''
    assert client.wire.is_closed


def test_a_client_without_room_is_waited_for(files):
    client = TlsClient(driver_with(files), client_context(files))
    client.shake_hands()
    client.end.pause()
    assert not client.end.wants_data
    assert client.ask(METADATA) is None
    client.end.resume()
    client.move()
    client.session.receive_data(client.read())
    assert client.session.next_event().response.brokers


def test_a_callback_is_the_connections(files):
    end = driver_with(files).brokers[0].connect(Wire())
    end.when_ready = callback = object()
    assert end.connection.when_ready is end.when_ready is callback


# ---------------------------------------------------------------- who it is


def mutual(files, tmp_path, client_auth):
    certificate, key = make_certificate(str(tmp_path), 'alice', hosts=())
    context = client_context(files)
    context.load_cert_chain(certificate, key)
    return files._replace(client_ca=certificate, client_auth=client_auth), context


@pytest.mark.parametrize('client_auth', ['requested', 'required'])
def test_a_certificate_says_who_the_client_is(files, tmp_path, client_auth):
    tls, context = mutual(files, tmp_path, client_auth)
    client = TlsClient(driver_with(tls), context)
    client.shake_hands()
    assert client.end.principal == 'User:CN=alice'


def test_a_certificate_may_be_missing_where_it_is_requested(files, tmp_path):
    tls, _ = mutual(files, tmp_path, 'requested')
    client = TlsClient(driver_with(tls), client_context(files))
    client.shake_hands()
    assert client.end.principal == 'User:ANONYMOUS'


def test_a_certificate_that_is_required_may_not_be_missing(files, tmp_path):
    tls, _ = mutual(files, tmp_path, 'required')
    client = TlsClient(driver_with(tls), client_context(files))
    try:
        client.shake_hands()
        client.move()
        client.read()
    except ssl.SSLError as error:
        assert 'CERTIFICATE_REQUIRED' in str(error) or 'HANDSHAKE_FAILURE' in str(error)
    assert client.wire.is_closed


def test_a_login_decides_who_it_is_where_there_are_logins(files):
    driver = driver_with(files)
    driver.state.sasl = Sasl(driver.state, {'alice': 'secret'}, ['PLAIN'])
    client = TlsClient(driver, client_context(files))
    client.shake_hands()
    assert log_in(client.ask, 'alice', 'secret').error_code == 0
    assert client.end.principal == 'User:alice'


@pytest.mark.parametrize(
    ('subject', 'expected'),
    [
        (((('commonName', 'a'),),), 'CN=a'),
        (
            ((('countryName', 'DE'),), (('organizationName', 'Ä, Söhne'),), (('commonName', 'a'),)),
            'CN=a,O=Ä\\, Söhne,C=DE',
        ),
        (((('commonName', 'a'), ('userId', 'b')),), 'CN=a+UID=b'),
        (((('commonName', ' #a" '),),), 'CN=\\ #a\\"\\ '),
        (((('emailAddress', 'a@b'),),), '1.2.840.113549.1.9.1=#1603614062'),
        ((), ''),
    ],
)
def test_names_are_written_with_the_last_part_first(subject, expected):
    assert distinguished_name(subject) == expected


# ---------------------------------------------------------------- files


@pytest.mark.parametrize(
    ('values', 'reason'),
    [({'client_auth': 'yes'}, "'required'"), ({'client_auth': 'required'}, 'needs client_ca')],
)
def test_settings_that_mean_nothing_are_told(files, values, reason):
    with pytest.raises(ValueError, match=reason):
        files._replace(**values).context()


def test_files_that_are_not_there_or_no_certificates_are_told(files, tmp_path):
    with pytest.raises(CertificateError, match='No such file'):
        Tls(str(tmp_path / 'none'), files.key).context()
    (tmp_path / 'text').write_text('text')
    with pytest.raises(CertificateError, match='text with the key'):
        Tls(str(tmp_path / 'text'), files.key).context()
    with pytest.raises(CertificateError, match='text: '):
        files._replace(client_ca=str(tmp_path / 'text'), client_auth='required').context()
