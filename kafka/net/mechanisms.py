"""The names of SASL mechanisms: the built-in ones, and those that a program registers.

Separate from ``kafka.net.sasl``, so that security.py can reject an unknown name without importing
any mechanism. Pure.
"""

from __future__ import annotations

import difflib
from typing import Any, Dict, List, Type

from kafka.errors import InvalidOptionError

__all__ = ['BUILT_IN', 'check_mechanism', 'known_mechanisms', 'registered']

BUILT_IN = ('AWS_MSK_IAM', 'GSSAPI', 'OAUTHBEARER', 'PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512')

#: The class of each mechanism that was registered or used, by name.
registered: Dict[str, Type[Any]] = {}


def known_mechanisms() -> List[str]:
    """Return the names of all built-in and registered mechanisms."""
    return sorted({*BUILT_IN, *registered})


def check_mechanism(name: str) -> str:
    """Return the registered spelling of a mechanism name; the comparison ignores case.

    Raises KafkaConfigurationError for an unknown mechanism.
    """
    if name in registered:
        return name
    known = known_mechanisms()
    if name.upper() in known:
        return name.upper()
    near = difflib.get_close_matches(name.upper().replace('_', '-'), known, 1)
    raise InvalidOptionError(
        'no sasl_mechanism %r%s; there are %s, and what register_sasl_mechanism() adds'
        % (name, ': did you mean %s?' % near[0] if near else '', ', '.join(known))
    )
