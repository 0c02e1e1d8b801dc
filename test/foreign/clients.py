"""The foreign clients: their versions, and the virtual environments that they run in.

Owns the table of clients and the environments under ``.cache/foreign``, one for each client, made
with pip when it is not there. What they do is steps.py's business.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import NamedTuple, Optional, Tuple

from test.environments import find_interpreter, version_of

ROOT = Path(__file__).resolve().parent.parent.parent
CACHE = ROOT / '.cache' / 'foreign'
CODECS = ('crc32c', 'python-snappy', 'lz4', 'xxhash', 'zstandard')
INSTALL_SECONDS = 600


class Missing(Exception):
    """A client cannot run on this machine; the text says why."""


class Client(NamedTuple):
    """A client: what pip installs, with which Pythons, and the module that speaks for it."""

    name: str
    module: str
    packages: Tuple[str, ...]
    pythons: Tuple[str, ...]
    #: Steps that it has not, with the reason.
    lacks: Tuple[Tuple[str, str], ...] = ()
    #: The oldest release that it reaches, with the reason.
    since: Tuple[int, ...] = (0,)
    why_since: str = ''


CLASSIC_ONLY = (
    ('next generation group', 'it has only the classic protocol'),
    ('share group', 'it has none'),
)
CLIENTS = (
    Client(
        'confluent-kafka 2.16.1',
        'with_confluent.py',
        ('confluent-kafka==2.16.1',),
        ('3.11', '3.12', '3.13', '3.10', '3.9', '3.8'),
    ),
    Client(
        'kafka-python 2.0.2',
        'with_kafka_python.py',
        ('kafka-python==2.0.2', *CODECS),
        # Its copy of six cannot be imported from Python 3.12 on.
        ('3.11', '3.10', '3.9', '3.8'),
        (
            ('idempotence', 'it has none'),
            ('transactions', 'it has none'),
            *CLASSIC_ONLY,
        ),
    ),
    Client(
        'kafka-python 3.0.12',
        'with_kafka_python.py',
        ('kafka-python==3.0.12', *CODECS),
        ('3.11', '3.12', '3.13', '3.10', '3.9', '3.8'),
        CLASSIC_ONLY,
    ),
    Client(
        'aiokafka 0.14.0',
        'with_aiokafka.py',
        ('aiokafka==0.14.0', 'cramjam'),
        ('3.11', '3.12', '3.13', '3.10'),
        CLASSIC_ONLY,
        since=(0, 11),
        why_since='it writes nothing but record batches, which came with 0.11',
    ),
)


def environment(client: Client) -> Path:
    """Return the interpreter of a client; make its environment when it is not there.

    Raises Missing, with the reason in one line.
    """
    home = CACHE / client.name.replace(' ', '-')
    python = home / ('Scripts' if os.name == 'nt' else 'bin') / 'python'
    done = home / 'complete'
    wanted = ' '.join(client.packages)
    if not done.exists() or done.read_text() != wanted or not version_of(str(python)):
        home.parent.mkdir(parents=True, exist_ok=True)
        _run([_interpreter(client), '-m', 'venv', '--clear', str(home)])
        pip = [str(python), '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check']
        _run([*pip, '--no-input', *client.packages])
        done.write_text(wanted)
    return python


def _interpreter(client: Client) -> str:
    for version in client.pythons:
        found: Optional[str] = find_interpreter(version)
        if found is not None:
            return found
    raise Missing('%s needs one of these Pythons: %s' % (client.name, ' '.join(client.pythons)))


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=INSTALL_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing('%s: %s' % (' '.join(command), error)) from error
    if done.returncode:
        last = done.stdout.decode(errors='replace').strip().splitlines()[-1:] or ['']
        raise Missing('%s failed: %s' % (' '.join(command[-4:]), last[0]))
