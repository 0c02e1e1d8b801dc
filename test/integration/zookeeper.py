"""What a broker finds in ZooKeeper when it starts: users with their passwords, and ACLs.

Owns the few nodes and a client that can make nodes, nothing else. The tools of the releases write
the same, each in a JVM of its own, which takes long.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import socket
import struct
import time

from kafka.testing.security.scram import SALT_BYTES, ScramCredential

SECONDS = 60
ANSWER_SECONDS = 5
CREATE = 1
DONE, EXISTS = 0, -110
ALL_OPERATIONS, PERSISTENT = 31, 0
ANYBODY = b'world', b'anyone'


class ZooKeeper:
    """A session with ZooKeeper; use it as a context manager. Arguments: address: host:port."""

    def __init__(self, address):
        host, _, port = address.rpartition(':')
        self._address = host, int(port)
        self._ids = itertools.count(1)
        ends_at = time.monotonic() + SECONDS
        while not self._connects():  # it listens before it serves
            assert time.monotonic() < ends_at, 'ZooKeeper does not serve'
            time.sleep(0.1)

    def _connects(self):
        """Try to begin a session; one that is asked for too early may never be answered."""
        self._socket = socket.create_connection(self._address, ANSWER_SECONDS)
        try:
            self._ask(struct.pack('>iqiq', 0, 0, 30_000, 0) + _bytes(bytes(16)))
        except (AssertionError, ConnectionError, socket.timeout):
            self._socket.close()
            return False
        self._socket.settimeout(SECONDS)
        return True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def put(self, path, value):
        """Make a node with its parents; those that are there stay as they are."""
        names = path.strip('/').split('/')
        for depth in range(1, len(names)):
            self._create('/' + '/'.join(names[:depth]), b'')
        self._create(path, json.dumps(value).encode('ascii'))

    def _create(self, path, data):
        number = next(self._ids)
        acl = struct.pack('>ii', 1, ALL_OPERATIONS) + b''.join(map(_bytes, ANYBODY))
        answer = self._ask(
            struct.pack('>ii', number, CREATE)
            + _bytes(path.encode('ascii'))
            + _bytes(data)
            + acl
            + struct.pack('>i', PERSISTENT)
        )
        found, _, error = struct.unpack_from('>iqi', answer)
        assert (found, error) in ((number, DONE), (number, EXISTS)), (path, error)

    def _ask(self, data):
        self._socket.sendall(_bytes(data))
        (size,) = struct.unpack('>i', self._exactly(4))
        return self._exactly(size)

    def _exactly(self, size):
        data = b''
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            assert more, 'ZooKeeper closed the connection'
            data += more
        return data


def _bytes(data):
    return struct.pack('>i', len(data)) + data


def put_user(zookeeper, name, password, mechanisms):
    """Let a user log in by SCRAM."""
    config = {each: _credential(each, password) for each in mechanisms}
    zookeeper.put('/config/users/' + name, {'version': 1, 'config': config})


def _credential(mechanism, password):
    made = ScramCredential.of(mechanism, password, os.urandom(SALT_BYTES))
    keys = made.salt, made.stored_key(mechanism), made.server_key(mechanism)
    told = [base64.b64encode(each).decode('ascii') for each in keys]
    return 'salt=%s,stored_key=%s,server_key=%s,iterations=%d' % (*told, made.iterations)


def put_acl(zookeeper, topic, principal, operation):
    """Let somebody do something with a topic, and nobody else."""
    acl = {'principal': principal, 'permissionType': 'Allow', 'operation': operation, 'host': '*'}
    zookeeper.put('/kafka-acl/Topic/' + topic, {'version': 1, 'acls': [acl]})
