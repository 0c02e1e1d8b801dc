"""What a promise gets: a broker, names of its own, producers that are closed for it, ways to tell.

Runs in the process of a client, which may be kafka-python of others: uses nothing of this
repository, and nothing of ``kafka`` but what the documents name. What a promise returns has to be
JSON.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from kafka import KafkaProducer

PATIENCE = 20.0
PROGRAM_SECONDS = 60.0
# What a program can catch: classes that are named in documents or built in.
_UNNAMED = {'object', 'Exception', 'BaseException'}


class Promise(NamedTuple):
    """One promise: what to do, where it is written, and whom it is not for."""

    name: str
    section: str
    run: Callable[[Asking], Any]
    since: str  # the first of the foreign clients that makes it
    until: str  # the first one that makes it no more
    release: str  # the first brokers that can keep it


PROMISES: Dict[str, Promise] = {}


def promise(
    section: str, since: str = '2.0.2', until: str = '9', release: str = '0.9'
) -> Callable[[Any], Any]:
    """Register a function as a promise of a section of a document."""

    def register(run: Any) -> Any:
        name = run.__name__.replace('_', ' ')
        assert name not in PROMISES, name
        PROMISES[name] = Promise(name, section, run, since, until, release)
        return run

    return register


def raised(error: BaseException) -> Dict[str, Any]:
    """Describe an error by the classes that a program could catch it by."""
    names = sorted({each.__name__ for each in type(error).__mro__} - _UNNAMED)
    return {'raises': names}


def told(call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Return what a call returns, or what it raises."""
    try:
        return plain(call(*arguments, **named))
    except Exception as error:  # what a program would have to catch
        return raised(error)


def plain(value: Any) -> Any:
    """Return a value as JSON can have it."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode('latin-1')
    if isinstance(value, (set, frozenset)):
        return {'set': sorted(map(plain, value))}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {str(plain(key)): plain(each) for key, each in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return 'an object'


def is_now(milliseconds: Any) -> bool:
    """Tell whether a time is that of this promise."""
    return abs(time.time() * 1000 - milliseconds) < 120_000


def becomes(look: Callable[[], Any]) -> bool:
    """Wait until something is true, a long time at most; return whether it is."""
    end = time.monotonic() + PATIENCE
    while not look():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


class Asking:
    """One promise being tried."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self._open: List[Any] = []

    def other(self, name: str) -> str:
        """Return the name of another topic of this promise."""
        return '%s-%s' % (self.topic, name)

    def producer(self, **options: Any) -> Any:
        """Make a producer for the broker, closed when the promise is over."""
        options.setdefault('bootstrap_servers', self.bootstrap)
        made = KafkaProducer(**options)
        self._open.append(made)
        return made

    def offline(self, **options: Any) -> Any:
        """Make a producer whose brokers are not there."""
        options = {'api_version': (0, 11), 'max_block_ms': 300, **options}
        return self.producer(**{'bootstrap_servers': '127.0.0.1:1', **options})

    def close(self) -> None:
        """Close what the promise has left open."""
        for each in self._open:
            try:
                each.close(timeout=1)
            except Exception as error:  # some releases raise when records are left
                sys.stderr.write('closing: %r\n' % (error,))

    def program(self, text: str, *arguments: str, seconds: float = PROGRAM_SECONDS) -> Any:
        """Run a program with this client: (exit code, what it printed, the last line of errors)."""
        command = [sys.executable, '-c', text, self.bootstrap, self.topic, *arguments]
        environment = {key: each for key, each in os.environ.items() if key != 'PYTHONPATH'}
        if 'PROMISES_PATH' in os.environ:
            environment['PYTHONPATH'] = os.environ['PROMISES_PATH']
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment,
            cwd=os.path.dirname(os.path.abspath(__file__)),
            timeout=seconds,
            text=True,
        )
        sys.stderr.write(done.stderr)
        return [done.returncode, done.stdout.split(), 'Traceback' in done.stderr]


def threads_of(client_id: str) -> List[threading.Thread]:
    """Return the network threads of a producer."""
    return [each for each in threading.enumerate() if each.name == '%s-network-thread' % client_id]


def outcome(future: Any, seconds: Optional[float] = PATIENCE) -> Any:
    """Return where a record went, as [topic is told, partition, offset], or what was raised."""
    try:
        found = future.get(timeout=seconds)
    except Exception as error:  # what a program would have to catch
        return raised(error)
    return [found.partition, found.offset]
