"""Sockets that follow a script, a network that hands them out, and brokers behind them."""

from __future__ import annotations

import socket

from kafka.conn import KafkaConnection
from kafka.protocol import api
from kafka.protocol.api_versions import ApiVersion, ApiVersionsResponse
from kafka.protocol.frames import FrameReader, frame
from kafka.protocol.metadata import MetadataResponse


class FakeSocket:
    """Keeps what is sent; hands out what the script says, cut as it stands there.

    A script's items are bytes (b'' is the end of the stream) or errors to raise; it starts over
    never. recv() may return less than was asked for, never more.
    """

    def __init__(self, *script):
        self.script = list(script)
        self.sent = []
        self.asked = []
        self.calls = []
        self.fails = set()

    def sendall(self, data):
        self._call('sendall')
        self.sent.append(bytes(data))

    def settimeout(self, timeout):
        self.timeout = timeout

    def recv(self, size):
        self.asked.append(size)
        if not self.script:
            raise socket.timeout('timed out')
        item = self.script.pop(0)
        if isinstance(item, Exception):
            raise item
        if len(item) > size:
            self.script.insert(0, item[size:])
        return item[:size]

    def shutdown(self, how):
        self._call('shutdown')

    def close(self):
        self._call('close')

    def _call(self, name):
        self.calls.append(name)
        if name in self.fails:
            raise OSError('no %s' % name)

    @property
    def closed(self):
        return 'close' in self.calls


class FakeNetwork:
    """Stands for socket.create_connection; every connection gets the next socket."""

    def __init__(self, monkeypatch, *sockets):
        self.sockets = list(sockets)
        self.made = []
        self.calls = []
        monkeypatch.setattr(socket, 'create_connection', self.connect)

    def connect(self, *args, **kwargs):
        self.calls.append((args, kwargs))
        made = self.sockets.pop(0) if self.sockets else FakeSocket()
        if isinstance(made, Exception):
            raise made
        self.made.append(made)
        return made


def connect(monkeypatch, *sockets):
    """Return a connection, its network, and its first socket."""
    network = FakeNetwork(monkeypatch, *sockets)
    return KafkaConnection('host', 9, timeout=5), network, network.made[0]


NEW = {0: (0, 13), 1: (4, 18), 2: (1, 11), 3: (0, 13), 8: (2, 10), 9: (1, 10), 10: (0, 6)}
CLOSES = 'closes'


class Broker(FakeSocket):
    """A socket with a broker behind it: `serves` maps API keys to functions of a request.

    A function returns a response; None stays silent, CLOSES closes. ApiVersions is answered with
    `ranges`; None makes an old broker, which has none and answers in version 0 whatever is asked.
    """

    def __init__(self, serves, ranges=NEW):
        super().__init__()
        self.serves = dict(serves)
        if ranges is not None:
            keys = [ApiVersion(key, low, high) for key, (low, high) in ranges.items()]
            keys.append(ApiVersion(18, 0, 5))
            self.serves[18] = lambda _: ApiVersionsResponse(error_code=0, api_keys=keys)
        self.serves.setdefault(3, lambda _: MetadataResponse(brokers=[], topics=[]))
        self.is_old = ranges is None
        self.requests = []
        self._frames = FrameReader()

    def sendall(self, data):
        super().sendall(data)
        self._frames.receive_data(data)
        for each in iter(self._frames.next_frame, None):
            header, request = api.decode_request(each)
            self.requests.append((header.api_key, header.api_version))
            answer = self.serves.get(header.api_key, lambda _: CLOSES)(request)
            if answer is CLOSES:
                self.script.append(b'')
                return
            if answer is not None:
                version = 0 if self.is_old else header.api_version
                data = api.encode_response(answer, version, header.correlation_id)
                self.script.append(frame(data))


class Interrupted(Broker):
    """A broker for whose answer is waited when a signal comes."""

    handler = None

    def recv(self, size):
        handler, self.handler = self.handler, None
        if handler is not None:
            handler()
        return super().recv(size)
