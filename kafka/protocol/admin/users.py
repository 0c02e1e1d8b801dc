"""Messages for the administration of SCRAM credentials (KIP-554).

Salted passwords are never shown.
"""

from __future__ import annotations

from typing import List, Optional

from kafka.protocol.wire import Bytes, Int8, Int16, Int32, Message, Route, String, Struct, v


class UserName(Struct):
    name: String


class DescribeUserScramCredentialsRequest(
    Message, api_key=50, valid='0', flexible='0+', route=Route.ANY
):
    """Request the SCRAM credentials of users; null or empty means all users."""

    users: Optional[List[UserName]]


class CredentialInfo(Struct):
    mechanism: Int8
    iterations: Int32


class DescribeUserScramCredentialsResult(Struct):
    user: String
    error_code: Int16
    error_message: Optional[String]
    credential_infos: List[CredentialInfo]


class DescribeUserScramCredentialsResponse(Message, api_key=50, valid='0', flexible='0+'):
    """Mechanisms and iterations of each user."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: Optional[String]
    results: List[DescribeUserScramCredentialsResult]


class ScramCredentialDeletion(Struct):
    name: String
    mechanism: Int8


class ScramCredentialUpsertion(Struct):
    name: String
    mechanism: Int8
    iterations: Int32
    salt: Bytes = v(secret=True)
    salted_password: Bytes = v(secret=True)


class AlterUserScramCredentialsRequest(
    Message, api_key=51, valid='0', flexible='0+', route=Route.CONTROLLER
):
    """Set or delete SCRAM credentials."""

    deletions: List[ScramCredentialDeletion]
    upsertions: List[ScramCredentialUpsertion]


class AlterUserScramCredentialsResult(Struct):
    user: String
    error_code: Int16
    error_message: Optional[String]


class AlterUserScramCredentialsResponse(Message, api_key=51, valid='0', flexible='0+'):
    """One result per user."""

    throttle_time_ms: Int32
    results: List[AlterUserScramCredentialsResult]
