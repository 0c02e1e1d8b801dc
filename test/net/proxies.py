"""Real proxy programs of the distribution for a test: microsocks (SOCKS5) and tinyproxy (HTTP).

Owns their processes and settings; each listens on 127.0.0.1, on a port of its own, and ends with
the ``with`` block.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
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
