"""The worker's half of a conversation: lines of JSON in, steps done, checks counted, lines out.

Runs in the environments of the foreign clients, so: standard library only, and no import of this
repository. The other half is workers.py.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import threading
import time
import traceback
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

PAUSE_SECONDS = 0.02
#: After how long the log shows where a step is.
HANG_SECONDS = 70
#: How long a member polls. With 0.1 kafka-python 3.0.12 can lose an assignment: that is when it
#: looks at metadata and joins again, and what it gets is forgotten if poll() returns before.
POLL_SECONDS = 0.35


class Mismatch(Exception):
    """Something is not as it was expected to be; the text says what."""


class Checks:
    """Compares what was found with what was expected, and counts."""

    def __init__(self) -> None:
        self.passed = 0

    def equal(self, what: str, found: Any, expected: Any) -> None:
        """Check that two values are equal. Raises Mismatch."""
        if found != expected:
            raise Mismatch('%s: expected %s, found %s' % (what, _short(expected), _short(found)))
        self.passed += 1

    def records(self, what: str, found: List[Any], expected: List[Any]) -> None:
        """Check that two lists of records are equal. Raises Mismatch with the first difference."""
        if found != expected:
            pairs = zip([*found, '(end)'], [*expected, '(end)'])
            place = next((i for i, pair in enumerate(pairs) if pair[0] != pair[1]), 0)
            raise Mismatch(
                '%s: expected %d records, found %d; the first other one is number %d: expected %s,'
                ' found %s'
                % (
                    what,
                    len(expected),
                    len(found),
                    place,
                    _short([*expected, '(end)'][place : place + 1]),
                    _short([*found, '(end)'][place : place + 1]),
                )
            )
        self.passed += 1

    def raises(self, what: str, sign: str, action: Callable[[], Any]) -> None:
        """Check that something fails with an error whose repr has a sign in it."""
        try:
            found = 'no error, but %s' % _short(action())
        except Exception as error:  # foreign errors have no common class
            found = '%r' % (error,)
            if sign.lower() in found.lower():
                self.passed += 1
                return
        raise Mismatch('%s: expected an error with %r in it, found %s' % (what, sign, found))

    def becomes(self, what: str, look: Callable[[], Any], expected: Any, seconds: float) -> None:
        """Check that something becomes equal to a value within some seconds."""
        end = time.monotonic() + seconds
        while True:
            found = look()
            if found == expected or time.monotonic() > end:
                break
            time.sleep(PAUSE_SECONDS)
        self.equal('%s (within %d s)' % (what, seconds), found, expected)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 600 else text[:400] + ' ... ' + text[-150:]


class Record(NamedTuple):
    """A record, as all clients can show it."""

    partition: int
    offset: int
    key: Optional[bytes]
    value: Optional[bytes]
    headers: Tuple[Tuple[str, Optional[bytes]], ...] = ()
    timestamp: int = -1


class Steps(NamedTuple):
    """What a worker offers: how its client is called, and a function for each step."""

    version: str
    made: Callable[[Dict[str, Any]], Any]  # the client for a cluster
    steps: Dict[str, Callable[..., Any]]  # (client, checks, **what the runner says)


def serve(steps: Steps) -> None:
    """Answer the lines of standard input until it ends."""
    answers = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)  # what else is printed goes to the log
    for line in sys.stdin:
        answers.write(json.dumps(_answer(steps, json.loads(line))) + '\n')
        answers.flush()
    answers.close()
    sys.stderr.flush()
    os._exit(0)  # a thread of a client that hangs would keep the process


def _answer(steps: Steps, asked: Dict[str, Any]) -> Dict[str, Any]:
    if asked['step'] == 'version':
        return {'version': steps.version}
    checks = Checks()
    faulthandler.dump_traceback_later(HANG_SECONDS)
    try:
        told = steps.steps[asked['step']](steps.made(asked['cluster']), checks, **asked['with'])
        return {'passed': checks.passed, 'told': told}
    except Exception as error:  # whatever it is, the table shows it
        trace = traceback.format_exc()
        sys.stderr.write(trace)
        what = str(error) if isinstance(error, Mismatch) else '%r' % (error,)
        return {'passed': checks.passed, 'failed': what, 'trace': trace}
    finally:
        faulthandler.cancel_dump_traceback_later()


class Member:
    """A consumer of a group in a thread of its own, because some clients block until all joined."""

    def __init__(self, consumer: Any) -> None:
        self.consumer = consumer
        self.seen: List[Record] = []
        self.error: Optional[BaseException] = None
        self._wishes: List[Tuple[Callable[[], Any], threading.Event, List[Any]]] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._is_over.is_set():
                self.seen += self.consumer.poll(POLL_SECONDS)
                while self._wishes:
                    wish, done, result = self._wishes.pop(0)
                    result.append(wish())
                    done.set()
            self.consumer.close()
        except Exception as error:  # foreign errors have no common class
            traceback.print_exc()
            self.error = error

    def do(self, wish: Callable[[], Any], seconds: float = 20) -> Any:
        """Call a function in the thread of the consumer and return its result."""
        done, result = threading.Event(), []  # type: ignore[var-annotated]
        self._wishes.append((wish, done, result))
        end = time.monotonic() + seconds
        while not done.wait(0.05):
            self.check()
            if time.monotonic() > end:
                raise Mismatch('a member of the group did nothing for %d s' % seconds)
        return result[0]

    def assignment(self) -> List[int]:
        """Return the numbers of its partitions."""
        self.check()
        return sorted(self.consumer.assignment())

    def check(self) -> None:
        """Raise the error with which its thread ended."""
        if self.error is not None:
            raise Mismatch('a member of the group ended with %r' % (self.error,))

    def close(self, seconds: float = 20) -> None:
        """Leave the group."""
        self._is_over.set()
        self._thread.join(seconds)
        self.check()
        if self._thread.is_alive():
            raise Mismatch('a member of the group did not end within %d s' % seconds)
