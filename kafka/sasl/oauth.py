"""The names of kafka.sasl.oauth (2.3): OAUTHBEARER, and the interface of token providers."""

from __future__ import annotations

from kafka.net.sasl.oauth import AbstractTokenProvider
from kafka.net.sasl.oauth import OAuthBearer as SaslMechanismOAuth

__all__ = ['AbstractTokenProvider', 'SaslMechanismOAuth']
