"""ApiVersions answers: which are believed, which are asked again, what they make usable."""

from __future__ import annotations

import pytest

from kafka.errors import InvalidRequestError, ProtocolError, UnsupportedVersionError
from kafka.protocol.api import encode_response
from kafka.protocol.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kafka.protocol.negotiation import (
    BrokerVersions,
    broker_versions,
    read_versions,
    usable_versions,
    versions_request,
)


def answer(version, error_code=0, **fields):
    """Return the frame of a response; fields as the message has them."""
    fields.setdefault('api_keys', [])
    return encode_response(ApiVersionsResponse(error_code=error_code, **fields), version, 7)


def test_the_software_is_named_from_version_3_on():
    assert versions_request(3).client_software_name == 'kafka-evergreen'
    assert versions_request(2).client_software_name == ''
    assert versions_request(2).client_software_version == ''


@pytest.mark.parametrize('version', range(6))
def test_an_answer_in_the_version_asked_for_is_read(version):
    response = read_versions(answer(version, api_keys=[ApiVersion(0, 3, 12)]), version)
    assert response.api_keys == [ApiVersion(0, 3, 12)]


@pytest.mark.parametrize(('theirs', 'retry'), [(4, 4), (3, 3), (0, 0), (9, 0), (5, 0), (-1, 0)])
def test_error_35_is_read_in_version_0_and_the_listed_version_is_tried_next(theirs, retry):
    """KIP-511; a version that is not lower than the refused one would ask for ever."""
    refusal = answer(0, 35, api_keys=[ApiVersion(18, 0, theirs)])
    assert read_versions(refusal, 5) == retry


def test_error_35_without_a_list_means_version_0():
    """0.10.0 lists nothing."""
    assert read_versions(answer(0, 35), 5) == 0


def test_error_35_to_version_0_is_the_end():
    with pytest.raises(UnsupportedVersionError):
        read_versions(answer(0, 35), 0)


def test_an_unreadable_answer_to_a_later_version_is_asked_again_in_version_0():
    cut_off = answer(3, api_keys=[ApiVersion(0, 3, 12)])[:-3]
    assert read_versions(cut_off, 3) == 0
    assert read_versions(answer(0, 35, api_keys=[ApiVersion(18, 0, 3)])[:-3], 4) == 0


def test_an_unreadable_answer_to_version_0_is_an_error():
    with pytest.raises(ProtocolError):
        read_versions(answer(0, api_keys=[ApiVersion(0, 3, 12)])[:-3], 0)


def test_another_error_code_is_tried_once_more_in_version_0_and_then_raised():
    assert read_versions(answer(3, 42), 3) == 0
    with pytest.raises(InvalidRequestError):
        read_versions(answer(0, 42), 0)


def test_features_are_kept():
    response = ApiVersionsResponse(
        error_code=0,
        api_keys=[ApiVersion(18, 0, 4)],
        supported_features=[SupportedFeatureKey('transaction.version', 0, 2)],
        finalized_features_epoch=11,
        finalized_features=[FinalizedFeatureKey('transaction.version', 2, 2)],
    )
    assert broker_versions(response) == BrokerVersions(
        ranges={18: (0, 4)},
        supported_features={'transaction.version': (0, 2)},
        finalized_features={'transaction.version': 2},
        finalized_features_epoch=11,
    )


def test_produce_below_3_is_not_usable_where_12_is_listed():
    """Brokers from 4.0 on list it for librdkafka's sake and refuse it."""
    assert usable_versions({0: (0, 12)}) == {0: (3, 12)}
    assert usable_versions({0: (0, 11)}) == {0: (0, 11)}
    assert usable_versions({0: (5, 13)}) == {0: (5, 13)}


def test_offsets_in_zookeeper_are_not_usable_where_there_is_none():
    """KRaft of 2.8 to 3.9 lists version 0 and answers error 35; it lists no LeaderAndIsr."""
    listed = {8: (0, 9), 9: (0, 9), 18: (0, 4)}
    assert usable_versions(listed) == {8: (1, 9), 9: (1, 9), 18: (0, 4)}
    listed[4] = (0, 7)
    assert usable_versions(listed) == listed


def test_a_range_that_holds_nothing_is_left_out():
    assert usable_versions({0: (2, 1), 1: (-1, -1), 3: (0, 0)}) == {3: (0, 0)}
