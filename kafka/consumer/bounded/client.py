"""Connections of a bounded reader, which the next reader may go on with.

Owns the loop, the pool and the looking up of offsets, and that nothing is connected before it is
used. Does not own: what is read (reader.py). Whoever reads many ranges, one after the other, such
as the tasks that a process of Spark gets, connects once.
"""

from __future__ import annotations

from typing import Any, Callable, Optional

from kafka.config.resolution import Options
from kafka.errors import IllegalStateError
from kafka.net.loop.loop import Loop
from kafka.net.pool import Pool
from kafka.net.settings import NetSettings
from kafka.offsets.lookups import OffsetLookups

__all__ = ['ReaderClient']


class ReaderClient:
    """Connects when it is first used. Not safe for use by several threads at once.

    Arguments: config: resolved options of a consumer; new_loop: makes the loop.
    """

    def __init__(self, config: Options, new_loop: Callable[[], Loop]) -> None:
        self.config = config
        self.loop: Optional[Loop] = None
        self.pool: Any = None
        self.lookups: Any = None
        self._new_loop = new_loop
        self._is_found = False  # whether the cluster is
        self._is_closed = False

    def __repr__(self) -> str:
        state = 'closed' if self._is_closed else 'new' if self.loop is None else 'connected'
        return '<ReaderClient %s>' % state

    def connected(self) -> Loop:
        """Return the loop, with the cluster found. Raises as Pool.bootstrap()."""
        if self._is_closed:
            raise IllegalStateError('the client is closed')
        if self.loop is None:
            self._make()
        assert self.loop is not None
        if not self._is_found:
            seconds = self.config['request_timeout_ms'] / 1000
            if 'bootstrap_timeout_ms' in self.config.given:
                seconds = self.config['bootstrap_timeout_ms'] / 1000
            self.loop.run(self.pool.bootstrap(seconds), None)
            self._is_found = True
        return self.loop

    def _make(self) -> None:
        config = self.config
        settings = NetSettings.from_options(config)
        self.loop = self._new_loop()
        # A reader makes no topics.
        self.pool = Pool(self.loop, settings._replace(allow_auto_create_topics=False))
        self.lookups = OffsetLookups(
            self.loop,
            self.pool,
            config['isolation_level'] == 'read_committed',
            config['request_timeout_ms'] / 1000,
            config['retry_backoff_ms'] / 1000,
            config['retry_backoff_max_ms'] / 1000,
        )

    def close(self) -> None:
        """Close the connections; may be called again."""
        self._is_closed = True
        loop, self.loop = self.loop, None
        if loop is None:
            return
        try:
            loop.call_threadsafe(self.pool.close)
        except IllegalStateError:  # of another process, or closed already
            return
        loop.close()
