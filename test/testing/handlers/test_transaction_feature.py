"""What becomes of transactions when the feature transaction.version is set back (KIP-890)."""

from __future__ import annotations

import pytest

from kafka.testing import errors
from test.testing.handlers.test_transactions import V1, V2, begun, check_write


@pytest.mark.parametrize('what', ['a batch', 'an end'])
def test_version_2_is_refused_for_ever_once_the_feature_is_set_back(what):
    """As on 4.4.0: whoever asks afterwards waits for a change that never ends."""
    driver, producer = begun()
    if what == 'an end':
        assert check_write(producer, 12) == errors.NONE
    driver.state.features['transaction.version'] = 0
    if what == 'a batch':
        assert check_write(producer, 12) == errors.UNSUPPORTED_VERSION
    else:
        assert check_write(producer, 12) == errors.NONE  # its partition is there
        assert producer.end(False, V2) == errors.UNSUPPORTED_VERSION
    assert producer.end(False, V1) == errors.CONCURRENT_TRANSACTIONS
    assert producer.init() == errors.CONCURRENT_TRANSACTIONS
    assert producer.add(0) == errors.CONCURRENT_TRANSACTIONS


def test_version_1_ends_what_version_2_began_before_the_feature_was_set_back():
    driver, producer = begun()
    assert check_write(producer, 12) == errors.NONE
    driver.state.features['transaction.version'] = 0
    assert producer.end(True, V1) == errors.NONE
