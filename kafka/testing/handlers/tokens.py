"""Delegation token APIs of an embedded cluster (KIP-48, KIP-373).

Only for authenticated clients, and if ``Defaults.delegation_token_secret`` is set.
"""

from __future__ import annotations

from typing import Any, Callable, Tuple, TypeVar

from kafka.protocol.admin.tokens import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from kafka.testing import errors
from kafka.testing.calls import Call, handles
from kafka.testing.security import acls
from kafka.testing.security.tokens import Principal, Token, Tokens
from kafka.testing.topic_checks import Refused, refuse

T = TypeVar('T')

_NOBODY = 'ANONYMOUS'


def _asked(call: Call[Any]) -> Tuple[Tokens, Principal]:
    """Return the tokens and the principal of a request. Raises Refused if it is not allowed."""
    who = Principal.parse(call.principal)
    state = call.state
    is_by_token = call.login is not None and call.login.by_token
    if who.name == _NOBODY or is_by_token:
        refuse(errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    secret = state.defaults.delegation_token_secret
    if not secret:
        refuse(errors.DELEGATION_TOKEN_AUTH_DISABLED)
    if state.tokens is None:
        state.tokens = Tokens(state, secret)
    tokens: Tokens = state.tokens
    return tokens, who


@handles(CreateDelegationTokenRequest)
def create_token(call: Call[CreateDelegationTokenRequest]) -> CreateDelegationTokenResponse:
    """Create a token."""
    request = call.request
    who = Principal.parse(call.principal)
    owner = who
    if request.owner_principal_name:
        owner = Principal(request.owner_principal_type or '', request.owner_principal_name)
    response = CreateDelegationTokenResponse(
        error_code=errors.NONE,
        principal_type=owner.type,
        principal_name=owner.name,
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
        token_id='',
        hmac=b'',
        throttle_time_ms=0,
    )
    if call.version >= 3:
        response.token_requester_principal_type = who.type
        response.token_requester_principal_name = who.name
    try:
        token = _created(call, owner)
    except Refused as refused:
        response.error_code = refused.code
        return response
    response.issue_timestamp_ms = token.issued_ms
    response.expiry_timestamp_ms = token.expires_ms
    response.max_timestamp_ms = token.last_ms
    response.token_id, response.hmac = token.token_id, token.password
    return response


def _created(call: Call[CreateDelegationTokenRequest], owner: Principal) -> Token:
    tokens, who = _asked(call)
    request = call.request
    renewers = [Principal(each.principal_type, each.principal_name) for each in request.renewers]
    if any(each.type != 'User' for each in [owner, *renewers]):
        refuse(errors.INVALID_PRINCIPAL_TYPE)
    return tokens.create(owner, who, tuple(renewers), request.max_lifetime_ms)


def _no_time(call: Call[Any], code: int) -> int:
    """Return the timestamp in an error response: 0 from a controller, -1 from a broker."""
    of_broker = (
        errors.DELEGATION_TOKEN_AUTH_DISABLED,
        errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    )
    return -1 if call.state.release.has_zookeeper or code in of_broker else 0


@handles(RenewDelegationTokenRequest)
def renew_token(call: Call[RenewDelegationTokenRequest]) -> RenewDelegationTokenResponse:
    """Renew a token."""
    period_ms = call.request.renew_period_ms
    return _changed(call, Tokens.renew, period_ms, RenewDelegationTokenResponse)


@handles(ExpireDelegationTokenRequest)
def expire_token(call: Call[ExpireDelegationTokenRequest]) -> ExpireDelegationTokenResponse:
    """Set the expiry of a token, or expire it now."""
    period_ms = call.request.expiry_time_period_ms
    return _changed(call, Tokens.expire, period_ms, ExpireDelegationTokenResponse)


def _changed(
    call: Call[Any],
    change: Callable[[Tokens, Principal, bytes, int], int],
    period_ms: int,
    response: Callable[..., T],
) -> T:
    """Change the expiry of a token; return the response."""
    code = errors.NONE
    try:
        tokens, who = _asked(call)
        expires_ms = change(tokens, who, call.request.hmac, period_ms)
    except Refused as refused:
        code, expires_ms = refused.code, _no_time(call, refused.code)
    return response(error_code=code, expiry_timestamp_ms=expires_ms, throttle_time_ms=0)


@handles(DescribeDelegationTokenRequest)
def describe_tokens(call: Call[DescribeDelegationTokenRequest]) -> DescribeDelegationTokenResponse:
    """Return the tokens that the caller may describe."""
    response = DescribeDelegationTokenResponse(
        error_code=errors.NONE, tokens=[], throttle_time_ms=0
    )
    asked = call.request.owners
    owners = (
        None if asked is None else [Principal(e.principal_type, e.principal_name) for e in asked]
    )

    def seen(token: Token) -> bool:
        return (
            token.may_renew(who)
            or call.may(acls.DESCRIBE, acls.DELEGATION_TOKEN, token.token_id)
            or call.may(acls.DESCRIBE_TOKENS, acls.USER, '%s:%s' % token.owner)
        )

    try:
        tokens, who = _asked(call)
        response.tokens = [_described(each, call.version) for each in tokens.of(owners, seen)]
    except Refused as refused:
        response.error_code = refused.code
    return response


def _described(token: Token, version: int) -> DescribedDelegationToken:
    described = DescribedDelegationToken(
        principal_type=token.owner.type,
        principal_name=token.owner.name,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.last_ms,
        token_id=token.token_id,
        hmac=token.password,
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=each.type, principal_name=each.name)
            for each in token.renewers
        ],
    )
    if version >= 3:
        described.token_requester_principal_type = token.requester.type
        described.token_requester_principal_name = token.requester.name
    return described
