"""The clients that promises are tried with: kafka-pythons of others in environments, and ours."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Dict, Tuple

from test.foreign import clients as foreign
from test.foreign.clients import CODECS, Client
from test.foreign.workers import Worker

WORKER = str(Path(__file__).resolve().parent / 'worker.py')
PYTHONS = ('3.11', '3.10', '3.9', '3.8')
FOREIGN = tuple(
    Client(
        'kafka-python %s' % version,
        WORKER,
        ('kafka-python==%s' % version, *CODECS),
        PYTHONS,
        since=since,
        why_since='it asks brokers for their versions in a way that those of 0.9 do not answer',
    )
    for version, since in (('2.0.2', (0,)), ('2.2.15', (0,)), ('3.0.12', (0, 10)))
)
OURS = Client('this package', WORKER, (), PYTHONS)


def numbers(release: str) -> Tuple[int, ...]:
    """Return a release as numbers."""
    return tuple(map(int, release.split('.')))


class Trying(Worker):
    """A process that tries promises with one client."""

    def __init__(self, client: Client) -> None:
        """Make the environment. Raises Missing."""
        if client is not OURS:
            super().__init__(client)
            return
        self.client, self.python = client, Path(sys.executable)
        foreign.CACHE.mkdir(parents=True, exist_ok=True)
        self.log = foreign.CACHE / 'this-package.log'
        self._process, self._lines = None, None
        self.log.write_text('')

    def environment(self) -> Dict[str, str]:
        """Return the environment of the process: ours finds the package in this repository."""
        kept = {key: each for key, each in os.environ.items() if not key.startswith('PYTHON')}
        if self.client is OURS:
            kept['PROMISES_PATH'] = str(foreign.ROOT)
        return kept

    def makes(self, since: Tuple[int, ...], until: Tuple[int, ...], release: str) -> bool:
        """Tell whether a promise of some releases is one of this client's, on these brokers."""
        if self.client is OURS:
            return True
        own = numbers(self.client.name.split()[-1])
        return since <= own < until and numbers(release) >= self.client.since


def found(worker: Worker, promise: str, bootstrap: str, topic: str) -> Any:
    """Return what a client does about a promise."""
    answer = worker.ask(promise, {'bootstrap': bootstrap, 'topic': topic})
    return answer.get('answer', {'broke': answer.get('failed')})
