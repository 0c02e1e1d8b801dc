"""kafka.partitioner.base: the base class of partitioners."""

from __future__ import annotations

import pytest

from kafka.partitioner.base import Partitioner


def test_the_base_class_keeps_the_list_and_chooses_nothing():
    partitioner = Partitioner([1, 2])
    assert partitioner.partitions == [1, 2]
    with pytest.raises(NotImplementedError):
        partitioner.partition(b'key')
