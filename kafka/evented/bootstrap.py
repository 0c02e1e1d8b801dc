"""Bootstrap: finds the cluster for the evented client, one bootstrap server after the other.

A step-wise search: which server is asked, its time limit, the errors so far, and, if requested, the
versions of the brokers. It never waits; kafka.evented.client calls its steps.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Iterable, List, Optional, Sequence, Tuple

from kafka.errors import KafkaError, KafkaTimeoutError, NoBrokersAvailable
from kafka.net.attempts import Attempt, describe, hint_for
from kafka.net.routes import is_fatal
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.struct_classes import class_of

__all__ = ['Bootstrap', 'metadata_request', 'nobody']

Host = Tuple[str, int, int]

# Versions of MetadataRequest: the last one without the options about authorized operations, and the
# first one with the option whether topics may be created.
_NEWEST_METADATA, _CREATION_SINCE = 7, 4


class Bootstrap:
    """One search through all servers; each is sent one metadata request for all topics.

    Arguments: hosts: (host, port, family) of the servers; make: returns a connection to one of
    them; seconds: the time limit for each server.

    Attributes: is_done; metadata: the response as a struct, None if no server answered;
    versions: {API key: (lowest, highest version)} of the server that answered, None unless the
    connection asks; attempts: the failed attempts, as kafka.net.attempts.Attempt.
    """

    def __init__(
        self, hosts: Iterable[Host], make: Callable[[str, int, int], Any], seconds: float
    ) -> None:
        self.is_done = False
        self.metadata: Any = None
        self.versions: Any = None
        self.attempts: List[Attempt] = []
        self._hosts = list(hosts)
        self._make = make
        self._seconds = seconds
        self._conn: Any = None
        self._future: Any = None
        self._began = 0.0

    def __repr__(self) -> str:
        left = len(self._hosts)
        return '<Bootstrap at %s, %d servers left>' % (self._conn, left)

    def step(self) -> bool:
        """Advance as far as possible without waiting; return True if the search is done."""
        while not self.is_done:
            if self._conn is None:
                if not self._hosts:
                    self.is_done = True
                    break
                self._begin(*self._hosts.pop(0))
            try:
                if not self._advance():
                    return False
            except (KafkaError, OSError) as error:
                self._give_up(error)
        return True

    def close(self) -> None:
        """End the search."""
        self.is_done = True
        conn, self._conn = self._conn, None
        if conn is not None:
            conn.close()

    def _begin(self, host: str, port: int, family: int) -> None:
        self._conn = self._make(host, port, family)
        self._future = None
        self._began = time.monotonic()

    def _advance(self) -> bool:
        """Advance with the current server; return True if its state has changed.

        Raises the error that makes the server unusable.
        """
        conn = self._conn
        if self._future is None:
            if conn.disconnected() and not self._may_try_again(conn):
                raise conn.attempts[-1].error
            conn.connect()
            if not conn.connected():
                self._check_time()
                return bool(conn.disconnected())
            self._future = conn.send(metadata_request(None, conn.versions))
        conn.recv()
        if not self._future.is_done:
            self._check_time()
            return False
        if self._future.failed():
            raise self._future.exception.with_traceback(None)
        self.metadata = self._future.value
        self.versions = conn.versions
        self.close()
        return True

    def _may_try_again(self, conn: Any) -> bool:
        """Return True before the first attempt, and while the name has addresses left to try."""
        return not conn.attempts or bool(conn.addresses_left)

    def _check_time(self) -> None:
        passed = time.monotonic() - self._began
        if passed > self._seconds:
            error = KafkaTimeoutError('%s did not answer within %.3g s' % (self._conn, passed))
            self._conn.close(error)
            raise error

    def _give_up(self, error: BaseException) -> None:
        """Record the failure, and continue with the next server."""
        conn, self._conn = self._conn, None
        noted = list(conn.attempts)
        if self._future is not None or not noted:
            stage = 'TCP' if self._future is None else 'Metadata'
            where = '%s:%s' % (conn.hostname, conn.port)
            passed = time.monotonic() - self._began
            noted.append(Attempt(where, conn.host, stage, passed, error, hint_for(stage, error)))
        self.attempts += noted
        conn.close()


def metadata_request(topics: Optional[Sequence[str]], versions: Any) -> Any:
    """Return a request struct for metadata of some topics, or of all for None.

    In the version with most information; version 0, which all brokers serve in some way, has no
    controller id. Arguments: versions: {API key: (lowest, highest version)} of the broker, or None.
    """
    version = min((versions or {}).get(MetadataRequest.api_key, (0, 0))[1], _NEWEST_METADATA)
    if version <= 0:
        return class_of(MetadataRequest, 0)(list(topics or ()))
    wanted = None if topics is None else list(topics)
    creates = [True] if version >= _CREATION_SINCE else []
    return class_of(MetadataRequest, version)(wanted, *creates)


def nobody(servers: Any, attempts: Iterable[Attempt]) -> KafkaError:
    """Return the error if no server answers: the last fatal one if any, with all attempts."""
    tried = list(attempts)
    final = [each.error for each in tried if is_fatal(each.error)]
    shown = describe(tried)
    text = 'no bootstrap server of %s answers' % (servers,)
    error: Any = NoBrokersAvailable('%s: %s' % (text, shown) if shown else text)
    if final:
        error = final[-1]
    error.attempts = tried
    return error  # type: ignore[no-any-return]
