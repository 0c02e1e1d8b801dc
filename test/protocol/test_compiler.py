"""The compiled code of every message and version agrees with the interpreter of the schema.

``HYPOTHESIS_PROFILE=thorough`` runs 10,000 random instances in all, spread evenly.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from test.protocol import interpreter
from test.protocol.strategies import PAIRS, instances

#: A profile's number of examples counts for all pairs together; each pair gets at least two. Two
#: more make up for the pairs that have fewer instances than that.
PER_PAIR = 2 + settings.default.max_examples // len(PAIRS)


@pytest.mark.parametrize(
    'cls, version', PAIRS, ids=['%s-v%d' % (cls.__name__, version) for cls, version in PAIRS]
)
def test_random_instances_agree_with_the_interpreter(cls, version):
    """Same bytes from both writers; both readers give back the instance, unknown tags included."""

    @settings(max_examples=PER_PAIR)
    @given(instances(cls, version))
    def agree(message):
        data = message.encode(version)
        assert data == interpreter.encode(message, version)
        assert cls.decode(data, version) == message
        assert interpreter.decode(cls, data, version) == message

    agree()
