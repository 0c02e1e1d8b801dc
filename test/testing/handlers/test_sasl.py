"""Logins on a connection: what may be said when, what is answered, and how long it lasts."""

from __future__ import annotations

import base64
import struct

import pytest

from kafka.protocol.admin.tokens import CreateDelegationTokenRequest
from kafka.protocol.admin.users import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from kafka.protocol.api_versions import ApiVersionsRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from kafka.testing.security.sasl.login import Sasl, chosen_mechanisms
from kafka.testing.security.sasl.oauthbearer import unsigned_token
from kafka.testing.security.scram import ScramCredential
from test.testing.drive import Driver
from test.testing.security.sasl.clients import ScramClient, log_in, plain

ALL = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512', 'OAUTHBEARER']
VERSIONS = ApiVersionsRequest(client_software_name='x', client_software_version='1')
METADATA = MetadataRequest(topics=[])


class Talk:
    """One connection to a broker with SASL."""

    def __init__(self, version='4.4', mechanisms=None, **settings):
        self.driver = Driver(version, **settings)
        state = self.driver.state
        names = chosen_mechanisms(state.release, mechanisms)
        state.sasl = Sasl(state, {'alice': 'secret', 'bob': 'secret of bob'}, names)
        self.client = self.driver.client()

    @property
    def connection(self):
        return self.client.connection

    def ask(self, request, version=None):
        """Return the answer, None if the connection was closed without one."""
        self.client.send(request, version)
        response = self.client.receive()
        if response is None:
            self.driver.advance(0.1)
            response = self.client.receive() if self.client.wire.written else None
        return response

    def tokens(self, data):
        """Send a bare token; return the bare answer, None if there is none."""
        self.connection.receive_data(struct.pack('>i', len(data)) + data)
        written, self.client.wire.written = bytes(self.client.wire.written), bytearray()
        assert not written or struct.unpack_from('>i', written)[0] == len(written) - 4
        return written[4:] if written else None

    def log_in(self, user='alice', password='secret', mechanism='PLAIN'):
        return log_in(self.ask, user, password, mechanism)


# ---------------------------------------------------------------- the usual way


@pytest.mark.parametrize('mechanism', ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'])
@pytest.mark.parametrize('version', ['1.0', '2.2', '2.8', '4.4'])
def test_a_client_logs_in_and_is_somebody(version, mechanism):
    talk = Talk(version)
    assert talk.connection.principal == 'User:ANONYMOUS'
    assert talk.ask(VERSIONS).error_code == 0
    assert talk.log_in(mechanism=mechanism).error_code == 0
    assert talk.connection.principal == 'User:alice'
    assert talk.ask(METADATA).brokers


def test_a_token_of_oauth_logs_in():
    talk = Talk(mechanisms=['OAUTHBEARER'])
    end_ms = talk.driver.timers.clock.wall_ms() + 5000
    token = 'n,,\x01auth=Bearer %s\x01\x01' % unsigned_token('carol', end_ms)
    talk.ask(SaslHandshakeRequest(mechanism='OAUTHBEARER'))
    answer = talk.ask(SaslAuthenticateRequest(auth_bytes=token.encode()))
    assert (answer.error_code, answer.session_lifetime_ms) == (0, 5000)
    assert talk.connection.principal == 'User:carol'


@pytest.mark.parametrize('version', ['0.10.0', '0.11', '2.8', '4.4'])
def test_after_handshake_v0_tokens_are_bare(version):
    talk = Talk(version)
    assert talk.ask(SaslHandshakeRequest(mechanism='PLAIN'), 0).error_code == 0
    assert talk.tokens(plain('alice', 'secret')) == b''
    assert talk.connection.principal == 'User:alice'
    assert talk.ask(METADATA).brokers


def test_scram_works_with_bare_tokens():
    talk = Talk('0.10.2')
    client = ScramClient('SCRAM-SHA-512', 'alice', 'secret')
    talk.ask(SaslHandshakeRequest(mechanism='SCRAM-SHA-512'), 0)
    assert talk.tokens(client.last(talk.tokens(client.first()))) == client.expected
    assert talk.connection.principal == 'User:alice'


def test_who_logged_in_by_a_delegation_token_gets_no_further_ones():
    talk = Talk(delegation_token_secret='of the brokers', connections_max_reauth_ms=3_600_000)
    talk.log_in()
    asked = CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=60_000)
    token = talk.ask(asked)
    talk.client = talk.driver.client()
    password = base64.b64encode(token.hmac).decode()
    answer = log_in(talk.ask, token.token_id, password, 'SCRAM-SHA-256', ',tokenauth=true')
    assert (answer.error_code, answer.session_lifetime_ms) == (0, 60_000)
    assert talk.connection.principal == 'User:alice'
    assert talk.ask(asked).error_code == 64


def test_a_user_altered_by_request_logs_in():
    talk = Talk()
    talk.log_in()
    credential = ScramCredential.of('SCRAM-SHA-512', 'new', b'salt')
    change = ScramCredentialUpsertion(
        name='carol',
        mechanism=2,
        iterations=credential.iterations,
        salt=credential.salt,
        salted_password=credential.salted_password,
    )
    talk.ask(AlterUserScramCredentialsRequest(deletions=[], upsertions=[change]))
    talk.client = talk.driver.client()
    assert talk.log_in('carol', 'new', 'SCRAM-SHA-512').error_code == 0
    assert talk.connection.principal == 'User:carol'


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize('mechanism', ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'])
@pytest.mark.parametrize('user', ['alice', 'nobody'])
def test_wrong_credentials_are_told_late_and_close_the_connection(mechanism, user):
    talk = Talk()
    talk.ask(SaslHandshakeRequest(mechanism=mechanism))
    scram = ScramClient(mechanism, user, 'wrong') if mechanism != 'PLAIN' else None
    token = plain(user, 'wrong') if scram is None else scram.first()
    if user == 'alice' and scram is not None:
        token = scram.last(talk.ask(SaslAuthenticateRequest(auth_bytes=token)).auth_bytes)
    talk.client.send(SaslAuthenticateRequest(auth_bytes=token))
    assert not talk.client.wire.written
    talk.driver.advance(0.1)
    answer = talk.client.receive()
    assert (answer.error_code, bool(answer.error_message), answer.auth_bytes) == (58, True, b'')
    assert talk.connection.is_closed


def test_bad_tokens_of_oauth_are_told_twice():
    talk = Talk(mechanisms=ALL)
    talk.ask(SaslHandshakeRequest(mechanism='OAUTHBEARER'))
    token = b'n,,\x01auth=Bearer %s\x01\x01' % unsigned_token('alice', 1).encode()
    answer = talk.ask(SaslAuthenticateRequest(auth_bytes=token))
    assert (answer.error_code, answer.auth_bytes) == (0, b'{"status":"invalid_token"}')
    assert talk.ask(SaslAuthenticateRequest(auth_bytes=b'\x01')).error_code == 58
    assert talk.connection.is_closed


def test_wrong_bare_tokens_close_the_connection_without_an_answer():
    talk = Talk()
    talk.ask(SaslHandshakeRequest(mechanism='PLAIN'), 0)
    assert talk.tokens(plain('alice', 'wrong')) is None
    talk.driver.advance(0.1)
    assert talk.connection.is_closed
    assert not talk.client.wire.written


def test_a_mechanism_that_is_not_offered_is_told_with_those_that_are():
    talk = Talk(mechanisms=['PLAIN', 'SCRAM-SHA-512'])
    answer = talk.ask(SaslHandshakeRequest(mechanism='GSSAPI'))
    assert (answer.error_code, answer.mechanisms) == (33, ['PLAIN', 'SCRAM-SHA-512'])
    assert talk.connection.is_closed


@pytest.mark.parametrize('request_', [METADATA, SaslAuthenticateRequest(auth_bytes=b'')])
def test_who_has_not_logged_in_is_disconnected(request_):
    talk = Talk()
    assert talk.ask(request_) is None
    assert talk.connection.is_closed


def test_before_a_login_versions_may_be_asked_for_once():
    talk = Talk()
    assert talk.ask(VERSIONS).error_code == 0
    assert talk.ask(VERSIONS) is None
    assert talk.connection.is_closed


def test_versions_that_were_not_told_may_be_asked_for_again():
    talk = Talk()
    assert talk.ask(ApiVersionsRequest()).error_code == 42
    assert talk.ask(VERSIONS).error_code == 0


def test_another_request_in_place_of_a_token_is_refused():
    talk = Talk()
    talk.ask(SaslHandshakeRequest(mechanism='PLAIN'))
    talk.client.send(MetadataRequest(topics=None), 12)
    talk.driver.advance(0.1)
    assert talk.client.receive() is not None
    assert talk.connection.is_closed


def test_frames_are_small_before_a_login():
    talk = Talk()
    talk.connection.receive_data(struct.pack('>i', 600000))
    assert talk.connection.is_closed
    talk = Talk()
    talk.log_in()
    talk.connection.receive_data(struct.pack('>i', 600000))
    assert not talk.connection.is_closed


# ---------------------------------------------------------------- afterwards


def test_after_a_login_tokens_are_out_of_place():
    talk = Talk()
    talk.log_in()
    assert talk.ask(SaslHandshakeRequest(mechanism='PLAIN')).error_code == 34
    assert talk.ask(SaslAuthenticateRequest(auth_bytes=b'')).error_code == 34
    assert talk.ask(METADATA).brokers


@pytest.mark.parametrize(('version', 'names'), [('0.11', ['GSSAPI']), ('1.0', []), ('4.4', [])])
def test_without_sasl_a_handshake_is_out_of_place(version, names):
    answer = Driver(version).ask(SaslHandshakeRequest(mechanism='PLAIN'))
    assert (answer.error_code, answer.mechanisms) == (34, names)


@pytest.mark.parametrize('version', ['1.0', '2.2', '4.4'])
def test_without_sasl_a_token_is_out_of_place(version):
    answer = Driver(version).ask(SaslAuthenticateRequest(auth_bytes=plain('a', 'b')))
    assert (answer.error_code, answer.auth_bytes) == (34, b'')
    assert 'after successful' in answer.error_message


def test_a_login_that_lasts_a_while_is_renewed():
    talk = Talk(connections_max_reauth_ms=10_000)
    assert talk.log_in().session_lifetime_ms == 10_000
    talk.driver.advance(9)
    assert talk.log_in().session_lifetime_ms == 10_000
    talk.driver.advance(9)
    assert talk.ask(METADATA).brokers


def test_a_login_that_has_ended_closes_the_connection():
    talk = Talk(connections_max_reauth_ms=10_000)
    talk.log_in()
    talk.driver.advance(10.001)
    assert talk.ask(METADATA) is None
    assert talk.connection.is_closed


def test_a_login_that_has_ended_may_still_be_renewed():
    talk = Talk(connections_max_reauth_ms=10_000)
    talk.log_in()
    talk.driver.advance(20)
    assert talk.log_in().error_code == 0


def test_a_login_is_renewed_once_in_a_second():
    talk = Talk(connections_max_reauth_ms=10_000)
    talk.log_in()
    talk.log_in()
    assert talk.ask(SaslHandshakeRequest(mechanism='PLAIN')).error_code == 34


def test_the_principal_does_not_change_on_the_way():
    talk = Talk(connections_max_reauth_ms=10_000)
    talk.log_in()
    answer = talk.log_in('bob', 'secret of bob')
    assert (answer.error_code, talk.connection.is_closed) == (58, True)


def test_nor_does_the_mechanism_which_is_not_even_said():
    talk = Talk(connections_max_reauth_ms=10_000)
    talk.log_in()
    assert talk.ask(SaslHandshakeRequest(mechanism='SCRAM-SHA-256')).error_code == 0
    token = ScramClient('SCRAM-SHA-256', 'alice', 'secret').first()
    assert talk.ask(SaslAuthenticateRequest(auth_bytes=token)) is None
    assert talk.connection.is_closed


def test_a_login_is_not_renewed_by_a_mechanism_that_is_not_offered():
    talk = Talk(connections_max_reauth_ms=10_000)
    talk.log_in()
    assert talk.ask(SaslHandshakeRequest(mechanism='GSSAPI')) is None
    assert talk.connection.is_closed


def test_logins_of_2_1_last():
    assert Talk('2.1', connections_max_reauth_ms=10_000).log_in().session_lifetime_ms == 0


# ---------------------------------------------------------------- secrets


def test_passwords_are_in_no_log_of_requests():
    talk = Talk()
    talk.log_in()
    log = talk.driver.state.control.requests.entries()
    assert [each.api.name for each in log] == ['SASL_HANDSHAKE', 'SASL_AUTHENTICATE']
    assert log[1].request.auth_bytes == b''


def test_passwords_are_not_shown():
    talk = Talk()
    talk.log_in()
    shown = [
        talk.driver.state.sasl,
        talk.connection,
        talk.connection.login,
        talk.driver.state.scram,
    ]
    assert 'secret' not in repr(shown)
