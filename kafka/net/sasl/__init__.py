"""SASL logins: the mechanisms by name, and the login conversation."""

from __future__ import annotations

from typing import Any, Type

from kafka.net import mechanisms
from kafka.net.failures import SaslError
from kafka.net.sasl.gssapi import Gssapi
from kafka.net.sasl.login import (
    MOST_LOGINS,
    ClosedAtVersions,
    LoggedIn,
    Login,
    authenticate,
    authenticate_bare,
    is_step,
    prepare,
    renewal_seconds,
    takes_time,
)
from kafka.net.sasl.mechanism import Exchange, Mechanism, SaslMechanism, adapted
from kafka.net.sasl.msk import AwsMskIam
from kafka.net.sasl.oauth import AbstractTokenProvider, OAuthBearer
from kafka.net.sasl.plain import Plain
from kafka.net.sasl.scram import ScramSha256, ScramSha512
from kafka.net.security import SaslSettings

__all__ = [
    'MOST_LOGINS',
    'AbstractTokenProvider',
    'ClosedAtVersions',
    'Exchange',
    'LoggedIn',
    'Login',
    'Mechanism',
    'SaslError',
    'SaslMechanism',
    'authenticate',
    'authenticate_bare',
    'get_sasl_mechanism',
    'is_step',
    'mechanism',
    'prepare',
    'register_sasl_mechanism',
    'renewal_seconds',
    'takes_time',
]

for _each in (Plain, ScramSha256, ScramSha512, OAuthBearer, Gssapi, AwsMskIam):
    mechanisms.registered.setdefault(_each.name, _each)


def register_sasl_mechanism(name: str, cls: Type[Any], overwrite: bool = False) -> None:
    """Register a SASL mechanism of the program (2.3).

    Arguments: cls: a Mechanism, or a class with the interface of SaslMechanism; overwrite: whether
    to replace a mechanism of the same name.
    Raises KafkaConfigurationError for a class that is neither, ValueError for a name that is in
    use.
    """
    adapted(name, cls)
    if not overwrite and name in mechanisms.registered:
        raise ValueError('there is a SASL mechanism %s; overwrite=True replaces it' % name)
    mechanisms.registered[name] = cls


def get_sasl_mechanism(name: str) -> Type[Any]:
    """Return the class of a mechanism. Raises KafkaConfigurationError for an unknown mechanism."""
    return mechanisms.registered[mechanisms.check_mechanism(name)]


def mechanism(settings: SaslSettings, host: str, now: float) -> Mechanism:
    """Return a Mechanism object for one login.

    Arguments: host: the broker's name as configured or advertised; now: seconds since the epoch.
    Raises KafkaConfigurationError for an unknown mechanism.
    """
    cls = adapted(settings.mechanism, get_sasl_mechanism(settings.mechanism))
    return cls(settings, host, now)
