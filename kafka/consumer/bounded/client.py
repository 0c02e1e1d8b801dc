"""ReaderClient: the connections of bounded readers, which several readers may use in turn.

It connects on first use. A program that reads many ranges one after the other, such as the tasks of
a Spark process, shares one and connects once. Its loop has a thread in the background.
"""

from __future__ import annotations

from typing import Any, Callable, Optional

from kafka.config.resolution import Options
from kafka.errors import IllegalStateError
from kafka.net.client import NetworkClient
from kafka.net.loop.event_loop import EventLoop
from kafka.net.settings import NetSettings
from kafka.offsets.lookups import OffsetLookups

__all__ = ['ReaderClient']


class ReaderClient:
    """A network client that connects on first use. Not safe for use by several threads at once.

    Arguments: config: resolved options of a consumer; name: of the background thread; new_client:
    makes the NetworkClient.

    Attributes: config; network: the NetworkClient, pool, and lookups, an OffsetLookups: None before
    the first use.
    """

    def __init__(
        self,
        config: Options,
        name: str,
        new_client: Callable[..., NetworkClient] = NetworkClient,
    ) -> None:
        self.config = config
        self.network: Optional[NetworkClient] = None
        self.pool: Any = None
        self.lookups: Any = None
        self._name = name
        self._new_client = new_client
        self._is_closed = False

    def __repr__(self) -> str:
        state = 'closed' if self._is_closed else 'new' if self.network is None else 'connected'
        return '<ReaderClient %s>' % state

    @property
    def loop(self) -> Optional[EventLoop]:
        """The loop; None before the first use, and after close()."""
        return None if self.network is None else self.network.loop

    def connected(self) -> EventLoop:
        """Bootstrap if needed, and return the loop.

        Raises: IllegalStateError after close(); as Pool.bootstrap().
        """
        if self._is_closed:
            raise IllegalStateError('the client is closed')
        network = self.network or self._make()
        if not network.is_bootstrapped:
            seconds = self.config['request_timeout_ms'] / 1000
            if 'bootstrap_timeout_ms' in self.config.given:
                seconds = self.config['bootstrap_timeout_ms'] / 1000
            network.connect(seconds)
        return network.loop

    def _make(self) -> NetworkClient:
        config = self.config
        # A reader must not create topics.
        settings = NetSettings.from_options(config)._replace(allow_auto_create_topics=False)
        network = self._new_client(settings, self._name)
        self.pool = network.pool
        self.lookups = OffsetLookups(
            network.loop,
            network.pool,
            config['isolation_level'] == 'read_committed',
            config['request_timeout_ms'] / 1000,
            config['retry_backoff_ms'] / 1000,
            config['retry_backoff_max_ms'] / 1000,
        )
        self.network = network
        return network

    def close(self) -> None:
        """Close the connections; may be called again."""
        self._is_closed = True
        network, self.network = self.network, None
        if network is not None:
            network.close()
