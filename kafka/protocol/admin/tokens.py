"""Messages for the administration of delegation tokens (KIP-48).

The HMAC of a token is its password and is never shown.
"""

from __future__ import annotations

from typing import List, Optional

from kafka.protocol.wire import Bytes, Int16, Int32, Int64, Message, Route, String, Struct, v


class CreatableRenewers(Struct):
    principal_type: String
    principal_name: String


class CreateDelegationTokenRequest(
    Message, api_key=38, valid='0-3', flexible='2+', route=Route.ANY
):
    """Create a token for the requester or, from v3 on, for another owner (KIP-373).

    v2 is flexible. 4.0 dropped v0.
    """

    owner_principal_type: Optional[String] = v('3+', default='')
    owner_principal_name: Optional[String] = v('3+', default='')
    renewers: List[CreatableRenewers]
    max_lifetime_ms: Int64


class CreateDelegationTokenResponse(Message, api_key=38, valid='0-3', flexible='2+'):
    """The token and its HMAC. v2 is flexible, v3 adds the requester (KIP-373)."""

    error_code: Int16
    principal_type: String
    principal_name: String
    token_requester_principal_type: String = v('3+', default='')
    token_requester_principal_name: String = v('3+', default='')
    issue_timestamp_ms: Int64
    expiry_timestamp_ms: Int64
    max_timestamp_ms: Int64
    token_id: String
    hmac: Bytes = v(secret=True)
    throttle_time_ms: Int32


class RenewDelegationTokenRequest(Message, api_key=39, valid='0-2', flexible='2+', route=Route.ANY):
    """Extend the lifetime of a token. v2 is flexible; 4.0 dropped v0."""

    hmac: Bytes = v(secret=True)
    renew_period_ms: Int64


class RenewDelegationTokenResponse(Message, api_key=39, valid='0-2', flexible='2+'):
    """The new expiry time. v2 is flexible."""

    error_code: Int16
    expiry_timestamp_ms: Int64
    throttle_time_ms: Int32


class ExpireDelegationTokenRequest(
    Message, api_key=40, valid='0-2', flexible='2+', route=Route.ANY
):
    """Set when a token expires; -1 for now. v2 is flexible; 4.0 dropped v0."""

    hmac: Bytes = v(secret=True)
    expiry_time_period_ms: Int64


class ExpireDelegationTokenResponse(Message, api_key=40, valid='0-2', flexible='2+'):
    """The expiry time. v2 is flexible."""

    error_code: Int16
    expiry_timestamp_ms: Int64
    throttle_time_ms: Int32


class DescribeDelegationTokenOwner(Struct):
    principal_type: String
    principal_name: String


class DescribeDelegationTokenRequest(
    Message, api_key=41, valid='0-3', flexible='2+', route=Route.ANY
):
    """Request tokens by owner; null means all. v2 is flexible; 4.0 dropped v0."""

    owners: Optional[List[DescribeDelegationTokenOwner]]


class DescribedDelegationTokenRenewer(Struct):
    principal_type: String
    principal_name: String


class DescribedDelegationToken(Struct):
    principal_type: String
    principal_name: String
    token_requester_principal_type: String = v('3+', default='')
    token_requester_principal_name: String = v('3+', default='')
    issue_timestamp: Int64
    expiry_timestamp: Int64
    max_timestamp: Int64
    token_id: String
    hmac: Bytes = v(secret=True)
    renewers: List[DescribedDelegationTokenRenewer]


class DescribeDelegationTokenResponse(Message, api_key=41, valid='0-3', flexible='2+'):
    """Tokens with their HMACs. v2 is flexible, v3 adds the requester (KIP-373)."""

    error_code: Int16
    tokens: List[DescribedDelegationToken]
    throttle_time_ms: Int32
