"""A cluster with an authorizer and several people who ask it."""

from __future__ import annotations

from kafka.testing.security.acls import (
    ALLOW,
    CLUSTER,
    CLUSTER_NAME,
    DENY,
    GROUP,
    LITERAL,
    TOPIC,
    Acl,
)
from kafka.testing.security.acls import TRANSACTIONAL_ID as TRANSACTION
from test.testing.drive import Driver

__all__ = ['CLUSTER', 'GROUP', 'TOPIC', 'TRANSACTION', 'People', 'codes']

AUTHORIZATION = {29, 30, 31, 53, 65}


class People(Driver):
    """``ask_as('bob', request)``; root is a super user."""

    def __init__(self, version='4.4', **settings):
        super().__init__(version, authorizer=True, super_users=('root',), **settings)
        self._known = {}

    def ask_as(self, user, request, version=None):
        """Send a request as a user; return the response, None if the connection was closed."""
        client = self._known.get(user)
        if client is None or client.connection.is_closed:
            client = self._known[user] = self.client()
            client.connection.principal = 'User:' + user
        client.send(request, version)
        while not client.connection.is_closed:
            response = client.receive()
            if response is not None:
                return response
            when = self.timers.next_time()
            if when is None:
                return None
            self.advance(max(0.0, when - self.timers.clock.monotonic()))
        return client.receive() if client.wire.written else None

    def allow(self, user, operation, kind, name=CLUSTER_NAME, pattern=LITERAL, permission=ALLOW):
        """Add an entry."""
        principal = 'User:' + user
        self.state.acls.add(Acl(kind, name, pattern, principal, '*', operation, permission))

    def deny(self, user, operation, kind, name=CLUSTER_NAME):
        """Add an entry that denies."""
        self.allow(user, operation, kind, name, permission=DENY)


def codes(struct):
    """Return all error codes in a message."""
    found = set()
    for field in type(struct).fields:
        value = getattr(struct, field.name)
        if field.name.endswith('error_code') and isinstance(value, int):
            found.add(value)
        for each in value if isinstance(value, list) else [value]:
            if hasattr(type(each), 'fields'):
                found |= codes(each)
    return found
