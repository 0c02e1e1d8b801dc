"""The names of kafka.sasl.msk (2.3): the mechanism AWS_MSK_IAM, for register_sasl_mechanism()."""

from __future__ import annotations

from kafka.net.sasl.msk import AwsMskIam as SaslMechanismAwsMskIam

__all__ = ['SaslMechanismAwsMskIam']
