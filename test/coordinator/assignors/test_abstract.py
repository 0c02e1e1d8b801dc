"""The contract of assignors and what those of the package have in common."""

from __future__ import annotations

import logging

import pytest

from kafka.coordinator.assignors.abstract import (
    AbstractPartitionAssignor,
    RebalanceProtocol,
    partitions_of,
)
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from test.coordinator.assignors.groups import Cluster, member


def test_an_assignor_has_to_have_all_of_it():
    class Half(AbstractPartitionAssignor):
        name = 'half'

    with pytest.raises(TypeError, match='abstract'):
        Half()


def test_an_assignor_is_eager_if_it_does_not_say_more():
    assert RangePartitionAssignor().supported_protocols() == [RebalanceProtocol.EAGER]


def test_metadata_is_made_of_any_iterable():
    told = RangePartitionAssignor.metadata({'t'})
    assert told == ConsumerProtocolMemberMetadata(0, ['t'], b'')


def test_topics_that_nobody_knows_are_left_out_with_a_warning(caplog):
    with caplog.at_level(logging.WARNING):
        found = partitions_of(Cluster(a=2), [member('m', 'ab')])
    assert found == {'a': [0, 1]}
    assert 'topic b' in caplog.text
