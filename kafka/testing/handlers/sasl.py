"""SaslHandshake and SaslAuthenticate of an embedded broker (KIP-43, KIP-152, KIP-368).

On a listener without SASL both are answered with ILLEGAL_SASL_STATE. Logins and
re-authentication are in :mod:`kafka.testing.security.sasl.login`.
"""

from __future__ import annotations

from typing import Optional

from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafka.testing import errors
from kafka.testing.calls import Call, handles
from kafka.testing.security.sasl.login import and_close
from kafka.testing.security.sasl.mechanisms import LoginBroken, LoginFailed

_LATE = 'SaslAuthenticate request received after successful authentication'


@handles(SaslHandshakeRequest)
def handshake(call: Call[SaslHandshakeRequest]) -> Optional[SaslHandshakeResponse]:
    """Select a mechanism."""
    login, state = call.login, call.state
    if login is None:
        # Before 1.0 brokers returned their default mechanism.
        names = ['GSSAPI'] if state.release.version < (1, 0) else []
        return SaslHandshakeResponse(error_code=errors.ILLEGAL_SASL_STATE, mechanisms=names)
    names = list(login.sasl.mechanisms)
    if login.is_done and not login.may_renew:
        names = names if state.release.version < (1, 0) else []
        return SaslHandshakeResponse(error_code=errors.ILLEGAL_SASL_STATE, mechanisms=names)
    if not login.agree(call.request.mechanism, is_bare=call.version == 0):
        if login.is_renewal:
            call.close_connection()
            return None
        call.deliveries.append(and_close)
        return SaslHandshakeResponse(error_code=errors.UNSUPPORTED_SASL_MECHANISM, mechanisms=names)
    return SaslHandshakeResponse(error_code=errors.NONE, mechanisms=names)


@handles(SaslAuthenticateRequest)
def authenticate(call: Call[SaslAuthenticateRequest]) -> Optional[SaslAuthenticateResponse]:
    """Process a token of the mechanism."""
    login = call.login
    if login is None or login.is_done:
        return SaslAuthenticateResponse(
            error_code=errors.ILLEGAL_SASL_STATE, error_message=_LATE, auth_bytes=b''
        )
    try:
        answer, lifetime_ms = login.step(bytes(call.request.auth_bytes))
    except LoginBroken:
        call.close_connection()
        return None
    except LoginFailed as failed:
        response = SaslAuthenticateResponse(
            error_code=errors.SASL_AUTHENTICATION_FAILED,
            error_message=str(failed),
            auth_bytes=b'',
        )
        login.refuse(call, response)
        return None
    response = SaslAuthenticateResponse(
        error_code=errors.NONE,
        error_message='' if call.state.release.version >= (2, 3) else None,
        auth_bytes=answer,
    )
    if call.version >= 1:
        response.session_lifetime_ms = lifetime_ms
    return response
