"""Proxies for a test: one in a thread, and microsocks (SOCKS5) and tinyproxy (HTTP), real programs.

Owns their processes and settings; each listens on 127.0.0.1, on a port of its own, and ends with
the ``with`` block.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import socket
import subprocess
import tempfile
import threading
import time

USER, PASSWORD = 'alice', 'canary'
SECONDS = 30
_TINYPROXY = """Port %(port)d
Listen 127.0.0.1
Timeout 60
MaxClients 50
LogFile "%(folder)s/log"
PidFile "%(folder)s/pid"
%(more)s
"""


def missing(name):
    """Say what is missing, None if nothing is."""
    return None if shutil.which(name) else 'no %s: install the package %s' % (name, name)


class SocksProxy:
    """A SOCKS5 proxy for one connection, which notes what it is asked for.

    Arguments: target: the port of the broker. Attributes: port; asked: the two requests, as bytes.
    """

    def __init__(self, target):
        self.asked = []
        self._target = target
        self._listener = socket.create_server(('127.0.0.1', 0))
        self._listener.settimeout(SECONDS)
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._thread.join()
        self._listener.close()

    def _serve(self):
        with self._listener.accept()[0] as client:
            self.asked.append(client.recv(512))
            client.sendall(b'\x05\x00')
            self.asked.append(client.recv(512))
            with socket.create_connection(('127.0.0.1', self._target), SECONDS) as broker:
                client.sendall(b'\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00')
                _pass_on(client, broker)


def _pass_on(one, other):
    """Pass bytes on in both directions until one end closes, or nothing happens for long."""
    across = {one: other, other: one}
    while True:
        ready = select.select(list(across), [], [], SECONDS)[0]
        if not ready:
            return
        for source in ready:
            try:
                data = source.recv(65536)
                across[source].sendall(data)
            except ConnectionError:
                return
            if not data:
                return


@contextlib.contextmanager
def socks(with_login=False):
    """Run microsocks; yield its port."""
    login = ['-u', USER, '-P', PASSWORD] if with_login else []
    with _running(
        lambda port, folder: ['microsocks', '-i', '127.0.0.1', '-p', str(port), *login]
    ) as port:
        yield port


@contextlib.contextmanager
def http(with_login=False, more=''):
    """Run tinyproxy; yield its port. Arguments: more: lines of its settings."""
    if with_login:
        more += '\nBasicAuth %s %s' % (USER, PASSWORD)

    def command(port, folder):
        path = os.path.join(folder, 'conf')
        with open(path, 'w', encoding='ascii') as file:
            file.write(_TINYPROXY % {'port': port, 'folder': folder, 'more': more})
        return ['tinyproxy', '-d', '-c', path]

    with _running(command) as port:
        yield port


@contextlib.contextmanager
def _running(command):
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        port = taken.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, 'out'), 'wb') as out:
            process = subprocess.Popen(command(port, folder), stdout=out, stderr=out)
        try:
            _wait(port, process, folder)
            yield port
        finally:
            process.terminate()
            process.wait(SECONDS)


def _wait(port, process, folder):
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            socket.create_connection(('127.0.0.1', port), 1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                with open(os.path.join(folder, 'out'), encoding='utf-8') as out:
                    raise AssertionError('the proxy did not start: %s' % out.read()) from None
        time.sleep(0.02)
