"""Request structs of one version on brokers that serve another one."""

from __future__ import annotations

from kafka.blocking.request_frames import Framing
from kafka.protocol import api
from kafka.protocol.api import ApiKey
from kafka.protocol.group import JoinGroupRequest


def test_members_of_old_versions_have_as_long_to_rejoin_as_their_session_lasts():
    """Which is what JoinGroup 0 meant; later versions say it themselves."""
    struct = JoinGroupRequest[0]('g', 7000, '', 'consumer', [])
    data, _ = Framing({ApiKey.JOIN_GROUP: (2, 9)}).frame(struct, 5, 'me', 0)
    header, request = api.decode_request(data[4:])
    assert header.api_version == 2
    assert (request.session_timeout_ms, request.rebalance_timeout_ms) == (7000, 7000)
