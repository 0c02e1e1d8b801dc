"""SCRAM on the client's side: the vectors of the RFCs, and brokers that cheat."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from kafka.errors import KafkaConfigurationError, SaslAuthenticationFailedError
from kafka.net.sasl import scram
from kafka.net.sasl.scram import ScramSha256, ScramSha512, client_proofs
from kafka.net.security import PasswordForm, SaslSettings
from test.net.sasl.logins import Link, settings

# RFC 7677, section 3: user, pencil.
CLIENT_NONCE = 'rOprNGfwEbeRWgbNEkqO'
SERVER_FIRST = (
    'r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096'
)
CLIENT_LAST = (
    'c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,'
    'p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ='
)
SERVER_LAST = 'v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4='
SALT = 'W22ZaJ0SNY7soEsUEjb6gQ=='


def exchange(cls=ScramSha256, user='user', password='pencil', form=None):
    """A client's exchange, with the nonce of the RFC."""
    made = cls(SaslSettings(cls.name, user, password, form=form), 'broker', 0.0)
    made.nonce = CLIENT_NONCE
    return made.exchange()


def step(steps, answer):
    return steps.send(answer.encode('utf-8')).decode('utf-8')


def test_the_vector_of_rfc_7677():
    steps = exchange()
    assert next(steps) == b'n,,n=user,r=' + CLIENT_NONCE.encode()
    assert step(steps, SERVER_FIRST) == CLIENT_LAST
    with pytest.raises(StopIteration):
        step(steps, SERVER_LAST)


def test_the_vector_of_rfc_5802():
    """It is of SHA-1, of which the arithmetic is the same."""
    said = (
        b'n=user,r=fyko+d2lbbFgONRv9qkxdawL,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,'
        b's=QSXCR+Q6sek8bf92,i=4096,c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j'
    )
    salt = base64.b64decode('QSXCR+Q6sek8bf92')
    proof, signature = client_proofs('sha1', b'pencil', salt, 4096, said)
    assert base64.b64encode(proof) == b'v0X8v3Bz2T0CJGbJQyF0X+HI4Ts='
    assert base64.b64encode(signature) == b'rmF9pqV8S7suAoZWja4dJRkFsKQ='


@pytest.mark.parametrize('name', ['sha256', 'sha512'])
def test_the_broker_can_check_the_proof_with_what_it_keeps(name):
    """The stored key is all it has; see RFC 5802, section 3."""
    proof, signature = client_proofs(name, b'secret', b'salt', 4096, b'said')
    salted = hashlib.pbkdf2_hmac(name, b'secret', b'salt', 4096)
    stored = hashlib.new(name, hmac.new(salted, b'Client Key', name).digest()).digest()
    mask = hmac.new(stored, b'said', name).digest()
    key = bytes(a ^ b for a, b in zip(proof, mask))
    assert hashlib.new(name, key).digest() == stored
    server_key = hmac.new(salted, b'Server Key', name).digest()
    assert signature == hmac.new(server_key, b'said', name).digest()


def test_commas_and_equals_in_a_name_are_escaped():
    assert next(exchange(user='a,b=c')) == b'n,,n=a=2Cb=3Dc,r=' + CLIENT_NONCE.encode()


def refused_at_first(answer, match):
    steps = exchange()
    next(steps)
    with pytest.raises(SaslAuthenticationFailedError, match=match) as caught:
        step(steps, answer)
    assert caught.value.stage == 'SASL' and 'pencil' not in str(caught.value)


@pytest.mark.parametrize('iterations', ['1', '4095', '1000001', '4294967296'])
def test_few_iterations_and_very_many_are_refused(iterations):
    answer = 'r=%sX,s=%s,i=%s' % (CLIENT_NONCE, SALT, iterations)
    refused_at_first(answer, 'asks for %s iterations; 4096 to 1000000' % iterations)


@pytest.mark.parametrize(
    'nonce', ['other', CLIENT_NONCE, CLIENT_NONCE[:-1] + 'x', 'x' + CLIENT_NONCE]
)
def test_a_nonce_that_is_not_ours_and_more_is_refused(nonce):
    refused_at_first('r=%s,s=%s,i=4096' % (nonce, SALT), 'its nonce is another')


@pytest.mark.parametrize(
    'answer',
    [
        '',
        'x',
        'e=other-error',
        'r=%s1,s=%s' % (CLIENT_NONCE, SALT),
        'r=%s1,s=,i=4096' % CLIENT_NONCE,
        'r=%s1,s=%s,i=0' % (CLIENT_NONCE, SALT),
        'r=%s1,s=%s,i=-5' % (CLIENT_NONCE, SALT),
        'r=%s1,s=%s,i=4096x' % (CLIENT_NONCE, SALT),
        's=%s,r=%s1,i=4096' % (SALT, CLIENT_NONCE),
        'r=%s1,s=%s,i=%s' % (CLIENT_NONCE, SALT, '9' * 5000),
    ],
)
def test_what_is_no_answer_is_refused(answer):
    refused_at_first(answer, 'is malformed')


def test_a_demanded_extension_is_refused():
    refused_at_first('m=x,r=%s1,s=%s,i=4096' % (CLIENT_NONCE, SALT), 'extension')


def test_a_salt_that_is_no_base64_is_refused():
    refused_at_first('r=%s1,s=W22,i=4096' % CLIENT_NONCE, 'not base64')


def test_an_answer_that_is_no_text_is_refused():
    steps = exchange()
    next(steps)
    with pytest.raises(SaslAuthenticationFailedError, match='not UTF-8'):
        steps.send(b'r=\xff\xfe')


@pytest.mark.parametrize(
    ('answer', 'match'),
    [
        ('v=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=', 'does not prove'),
        ('v=', 'does not prove'),
        ('v=6rri', 'does not prove'),
        ('', 'does not prove'),
        ('ok', 'does not prove'),
        ('e=invalid-proof', 'refused the login by SCRAM: invalid-proof'),
        ('v=?', 'does not prove'),
    ],
)
def test_a_broker_that_cannot_prove_to_know_the_password_is_refused(answer, match):
    """Also one that lets us in without a signature: it may be anybody."""
    steps = exchange()
    next(steps)
    step(steps, SERVER_FIRST)
    with pytest.raises(SaslAuthenticationFailedError, match=match):
        step(steps, answer)


def test_signatures_are_compared_in_constant_time(monkeypatch):
    compared = []

    def compare(one, other):
        compared.append((one, other))
        return True

    monkeypatch.setattr(scram.hmac, 'compare_digest', compare)
    steps = exchange()
    next(steps)
    step(steps, SERVER_FIRST)
    with pytest.raises(StopIteration):
        step(steps, 'v=AAAA')
    assert [len(other) for _, other in compared] == [32]


def test_nonces_are_long_and_never_the_same():
    made = ScramSha512(SaslSettings('SCRAM-SHA-512', 'u', 'p'), 'broker', 0.0)
    nonces = {next(made.exchange()).split(b'r=')[1] for _ in range(50)}
    assert len(nonces) == 50 and min(map(len, nonces)) >= 32
    assert not any(b',' in nonce for nonce in nonces)


# ---------------------------------------------------------------- SASLprep

ODD = 'o\ufb03ce'  # with a ligature
PLAIN_ODD = 'office'


@pytest.mark.parametrize('name', ['SCRAM-SHA-256', 'SCRAM-SHA-512'])
def test_a_broker_that_keeps_the_prepared_form_lets_us_in(name):
    link = Link(passwords={'alice': PLAIN_ODD})
    link.log_in(settings(name, password=ODD))
    assert link.principal == 'User:alice'


def test_a_broker_that_keeps_passwords_as_they_are_lets_us_in_on_the_second_connection():
    """So does Apache Kafka. What was learned is used from then on, also where it was wrong."""
    link = Link(passwords={'alice': ODD})
    sasl = settings('SCRAM-SHA-256', password=ODD)
    with pytest.raises(SaslAuthenticationFailedError) as caught:
        link.log_in(sasl)
    assert caught.value.login_again
    for _ in range(2):
        link.connect()
        link.log_in(sasl)
        assert link.principal == 'User:alice'


def test_a_wrong_password_with_two_forms_is_tried_twice_and_no_more():
    link = Link(passwords={'alice': 'other'})
    sasl = settings('SCRAM-SHA-256', password=ODD)
    again = []
    for _ in range(4):
        link.connect()
        with pytest.raises(SaslAuthenticationFailedError) as caught:
            link.log_in(sasl)
        again.append(caught.value.login_again)
    assert again == [True, False, True, False]


def test_what_saslprep_forbids_is_sent_as_it_is():
    """A password with characters younger than Unicode 3.2, which Kafka takes."""
    link = Link(passwords={'alice': 'pass\U0001f511word'})
    link.log_in(settings('SCRAM-SHA-256', password='pass\U0001f511word'))
    assert link.principal == 'User:alice'


def test_what_was_learned_is_not_shared_between_clients():
    one, other = (settings('SCRAM-SHA-256', password=ODD) for _ in range(2))
    one.form.is_as_given = True
    assert not other.form.is_as_given
    assert repr(PasswordForm()) == '<PasswordForm is_as_given=False>'


def test_a_password_that_utf_8_does_not_have_is_named_and_not_shown():
    steps = exchange(password='Canary\ud800')
    next(steps)
    with pytest.raises(KafkaConfigurationError, match='sasl_plain_password') as caught:
        step(steps, SERVER_FIRST)
    assert 'Canary' not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__suppress_context__
