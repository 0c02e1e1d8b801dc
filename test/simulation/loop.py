"""The loop of simulations: an EventLoop (kafka/net/loop/event_loop.py) over a MemoryCluster.

A Scheduler, the same as in kafka.net.loop.loop.Loop, run by the cluster's clock and sockets, all in
one thread and one order of events, so that a seed replays a run. run() and wait() let virtual time
pass until they have what they wait for.
"""

from __future__ import annotations

import math
import socket

from kafka.errors import IllegalStateError, KafkaConnectionError, KafkaTimeoutError
from kafka.net.attempts import at_stage
from kafka.net.loop.tasks import Scheduler, Waiter
from kafka.net.resolver import Address

READ_BYTES = 128 * 1024
#: So much may happen in one call; more than that is a circle.
MAX_STEPS = 200_000


class SimTransport:
    """A connection to a broker in memory; the interface of kafka.net.transport.Transport."""

    is_encrypted = is_torn = False

    def __init__(self, loop, sock, address):
        self.peername = address.ip, address.sockaddr[1]
        self.is_closed = False
        self.expecting = False
        self.unsent_bytes = 0
        self._loop = loop
        self._sock = sock
        self._reader = None
        self._on_data = self._on_broken = None
        self._is_told = False  # a look at the socket is due
        self.descriptor = sock
        sock.on_ready = self._look_soon

    def __repr__(self):
        return '<SimTransport to %s:%s>' % self.peername

    def write(self, buffers, noted=None):
        if self.is_closed:
            raise KafkaConnectionError('the connection to %s:%s is closed' % self.peername)
        try:
            data = b''.join(bytes(each) for each in buffers)
            self._sock.sendall(data)
            if noted is not None:
                noted[:] = [len(data)]
        except OSError as error:
            raise self._broken(error) from error

    async def send(self, buffers):
        self.write(buffers)

    async def recv(self):
        if self.is_closed:
            raise KafkaConnectionError('the connection to %s:%s is closed' % self.peername)
        self._reader = Waiter()
        self._look_soon()
        try:
            return await self._reader
        finally:
            self._reader = None

    def listen(self, on_data, on_broken):
        if self.is_closed:
            raise KafkaConnectionError('the connection to %s:%s is closed' % self.peername)
        self._on_data, self._on_broken = on_data, on_broken
        self._look_soon()

    def receive_into(self, received):
        received[:] = [data for data in [self.receive()] if data is not None]

    def receive(self):
        if self.is_closed or not self._sock.is_ready:
            return None
        data = self._taken()
        if data:
            self._look_soon()
        return data

    def _taken(self):
        try:
            return self._sock.recv(READ_BYTES)
        except OSError as error:
            self._on_data = None
            self._loop.call_soon(self._on_broken, self._broken(error))
            return None

    def _look_soon(self):
        """Look at the socket in the next turn, if there is anything to be seen."""
        if not self._is_told and self._sock.is_ready:
            self._is_told = True
            self._loop.call_soon(self._look)

    def _look(self):
        """Give what has arrived to who reads."""
        self._is_told = False
        if self.is_closed or not self._sock.is_ready:
            return
        if self._on_data is not None:
            self._tell()
        elif self._reader is not None and not self._reader.done:
            try:
                data = self._sock.recv(READ_BYTES)
            except OSError as error:
                self._reader.fail(self._broken(error))
            else:
                self._reader.wake(data)

    def _tell(self):
        data = self._taken()
        if data is not None:
            self._on_data(data)
            if data:  # behind the end of the stream there is nothing more
                self._look_soon()

    def _broken(self, error):
        broken = KafkaConnectionError(
            'the connection to %s:%s broke: %s' % (*self.peername, error.strerror)
        )
        broken.__cause__ = error
        return broken

    def close(self):
        if not self.is_closed:
            self.is_closed = True
            self.expecting = False
            self._on_data = None
            self._sock.on_ready = None
            self._sock.close()
            self._loop.transports.pop(self, None)
            if self._reader is not None:
                self._reader.fail(KafkaConnectionError('the connection was closed'))


class InMemory:
    """What a loop does over the network of a MemoryCluster, ``_cluster``, and not over sockets.

    Attributes: transport_class: of its connections; transports: those that are open.
    """

    transport_class = SimTransport

    def wall(self):
        return self._cluster.timers.clock.wall_ms() / 1000

    async def resolve(self, host, port, timeout):
        return [Address(socket.AF_INET, (host, port))]

    async def blocking(self, function, timeout, what):
        await self.sleep(0)
        return function()

    async def connect(self, address, timeout, options=None):
        await self.sleep(self._cluster.network.latency())
        try:
            sock = self._cluster.network.connect(address.sockaddr, 0.0)
        except OSError as error:
            failed = KafkaConnectionError('%s:%s cannot be reached' % address.sockaddr)
            raise at_stage(failed, 'TCP') from error
        transport = self.transport_class(self, sock, address)
        self.transports[transport] = None
        return transport


class SimLoop(InMemory, Scheduler):
    """A loop on the virtual clock of a cluster that was started.

    Arguments: cluster: a MemoryCluster; fellows: the loops that go on while one of them is waited
    in, a list that all of them share; None for this one alone.
    """

    def __init__(self, cluster, fellows=None):
        super().__init__(cluster.timers.clock.monotonic)  # seconds of the virtual clock
        self.fellows = [] if fellows is None else fellows
        self.fellows.append(self)
        self.transports = {}
        self._cluster = cluster
        self._timers_of_all = cluster.timers
        self._turns = 0  # in which something ran
        self._is_closed = False
        self._is_running = False
        #: Whether nothing happens here, as in a process that was stopped.
        self.is_frozen = False
        self._is_asleep = False  # in the middle of a turn

    def call_later(self, seconds, call, *args):
        """Call something later, in the one order of all that happens."""
        return self._timers_of_all.later(seconds, lambda: self._due(call, args))

    def _due(self, call, args):
        if self.is_frozen or self._is_asleep:
            self.ready.append((call, args))
        elif not self._is_closed:
            self._turns += 1
            self._guarded(call, args)

    # -- from outside ----------------------------------------------------------------------------

    def call_threadsafe(self, call, *args):
        if self._is_closed:
            raise IllegalStateError('the client is closed')
        self.call_soon(call, *args)

    call_lazily = call_threadsafe

    def call_from_finalizer(self, call, *args):
        if not self._is_closed:
            self.call_soon(call, *args)

    def runs_here(self):
        return self._is_running

    def start(self):
        """Do nothing: who waits lets things happen."""

    def run(self, coroutine, timeout):
        if self._is_running or self._is_closed:
            coroutine.close()
        task = None if self._is_running or self._is_closed else self.spawn(coroutine)
        if not self.wait(lambda: task.done, timeout):
            task.cancel()
            self._settle()
            raise KafkaTimeoutError('%s took longer than %s seconds' % (task.name, timeout))
        return task.result()

    def wait(self, done, timeout, begin=None):
        ask = done if callable(done) else lambda: done.is_done
        if self._is_running:
            raise IllegalStateError('a call that blocks was made in a callback')
        if self._is_closed:
            raise IllegalStateError('the client is closed')
        end = math.inf if timeout is None else self.time() + timeout
        self._settle()
        if ask():
            return True
        for _ in range(MAX_STEPS):
            turns = self._turns
            if not self._timers_of_all.step(end):
                if end == math.inf:
                    raise IllegalStateError('it is waited for ever: nothing is due')
                self._timers_of_all.advance(end - self.time())
                return bool(ask())
            self._settle()
            # What is waited for changes in turns of this loop, as in earnest.
            if self._turns != turns and ask():
                return True
        raise IllegalStateError('it is waited for, and much happens, but not that')

    def step(self):
        """Do the next thing that is due anywhere; return whether there was one."""
        self._settle()
        stepped = self._cluster.step()
        self._settle()
        return stepped

    def _settle(self):
        """Run what is ready here and in the fellows, until nothing is."""
        for loop in tuple(self.fellows):
            if loop.ready:
                loop.settle_alone()

    def settle_alone(self):
        """Run what is ready here."""
        if self._is_running or self.is_frozen:
            return
        self._is_running = True
        try:
            while self.ready:
                self._turns += 1
                self.run_ready()
        finally:
            self._is_running = False

    def close(self, timeout=5.0):
        if self._is_closed:
            return
        for task in list(self.tasks):
            task.cancel()
        self.wait(lambda: not self.tasks, timeout)
        self._end()

    def die(self):
        """End it as kill -9 does: the connections are closed, and nothing more is said."""
        if not self._is_closed:
            for transport in list(self.transports):
                transport.close()
            self._end()

    def _end(self):
        self._is_closed = True
        for transport in list(self.transports):
            transport.close()
        self.drop_all()
        self.fellows.remove(self)

    def is_only(self, transport, until):
        """Let time pass in a turn, as in earnest, until something is to be done here."""
        assert self._is_running
        self._is_asleep = True
        try:
            while not self.ready:
                if not self._timers_of_all.step(until):
                    return False
                self._settle()
        finally:
            self._is_asleep = False
        if len(self.ready) > 1 or self.ready[0] != (transport._look, ()):
            return False
        self.ready.popleft()
        transport._is_told = False
        return True


__all__ = ['InMemory', 'SimLoop', 'SimTransport']
