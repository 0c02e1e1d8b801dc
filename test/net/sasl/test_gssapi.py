"""GSSAPI without Kerberos: the order of the steps. With a KDC: test/integration/."""

from __future__ import annotations

import sys
import types

import pytest

from kafka.errors import KafkaConfigurationError, SaslAuthenticationFailedError
from kafka.net.sasl import authenticate_bare, mechanism
from kafka.protocol.negotiation import BrokerVersions
from kafka.protocol.session import LoginAnswered, Role, Session, State
from test.net.sasl.logins import settings


class GSSError(Exception):
    """As the package has it."""


class Context:
    """A context that is complete after the broker's first token."""

    made = None

    def __init__(self, name, mech, usage):
        assert (mech, usage) == ('kerberos', 'initiate')
        self.name = name
        self.complete = False
        self.offer = b'\x07\x00\x00\x00'
        Context.made = self

    def step(self, token):
        if token is None:
            return b'ticket'
        if token == b'bad':
            raise GSSError('wrong principal\n in request')
        self.complete = True
        return None

    def unwrap(self, data):
        assert data == b'offer'
        return types.SimpleNamespace(message=self.offer)

    def wrap(self, data, is_secret):
        assert not is_secret
        return types.SimpleNamespace(message=b'wrapped ' + data)


@pytest.fixture
def package(monkeypatch):
    module = types.ModuleType('gssapi')
    module.SecurityContext = Context
    module.Name = lambda text, kind: (text, kind)
    module.NameType = types.SimpleNamespace(hostbased_service='host', kerberos_principal='whole')
    module.MechType = types.SimpleNamespace(kerberos='kerberos')
    module.exceptions = types.SimpleNamespace(GSSError=GSSError)
    monkeypatch.setitem(sys.modules, 'gssapi', module)
    return module


def made(**options):
    return mechanism(settings('GSSAPI', user=None, password=None, **options), 'broker', 0.0)


def test_a_ticket_is_shown_and_no_layer_agreed_on(package):
    means = made()
    means.prepare()
    steps = means.exchange()
    assert next(steps) == b'ticket'
    assert steps.send(b'mutual') == b''
    assert not means.ends_unanswered
    assert steps.send(b'offer') == b'wrapped \x01\x00\x00\x00'
    assert means.ends_unanswered
    with pytest.raises(StopIteration):
        steps.send(b'')


@pytest.mark.parametrize(
    ('options', 'name'),
    [
        ({}, ('kafka@broker', 'host')),
        ({'sasl_kerberos_service_name': 'mine'}, ('mine@broker', 'host')),
        ({'sasl_kerberos_domain_name': 'other'}, ('kafka@other', 'host')),
        ({'sasl_kerberos_name': 'kafka/x@REALM'}, ('kafka/x@REALM', 'whole')),
    ],
)
def test_who_the_broker_is(package, options, name):
    made(**options).prepare()
    assert Context.made.name == name


def test_a_name_of_the_package_is_taken_as_it_is(package):
    name = object()
    made(sasl_kerberos_name=name).prepare()
    assert Context.made.name is name


def test_a_failure_of_kerberos_is_told_with_what_to_look_at(package):
    steps = made().exchange()
    next(steps)
    with pytest.raises(SaslAuthenticationFailedError, match='wrong principal in request; see'):
        steps.send(b'bad')


@pytest.mark.parametrize('offer', [b'\x06\x00\x00\x00', b'\x01', b''])
def test_a_layer_that_is_demanded_is_refused(package, offer):
    steps = made().exchange()
    next(steps)
    steps.send(b'mutual')
    Context.made.offer = offer
    with pytest.raises(SaslAuthenticationFailedError, match='security layer'):
        steps.send(b'offer')


def test_a_broker_of_0_9_takes_tokens_at_once_and_does_not_answer_the_last(package):
    session = Session(Role.CLIENT)
    session.adopt(BrokerVersions({3: (0, 0)}))
    steps = authenticate_bare(session, made())
    assert next(steps) == b'\0\0\0\x06ticket'
    assert steps.send(LoginAnswered(b'mutual')) == b'\0\0\0\0'
    with pytest.raises(StopIteration) as done:
        steps.send(LoginAnswered(b'offer'))
    assert done.value.value.unsent == b'\0\0\0\x0cwrapped \x01\0\0\0'
    assert session.state is State.READY


def test_without_the_package_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, 'gssapi', None)
    with pytest.raises(KafkaConfigurationError, match=r'pip install kafka-evergreen\[gssapi\]'):
        made().prepare()
