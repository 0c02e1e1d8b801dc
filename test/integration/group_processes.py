"""Starts the members of group_member.py, kills them, and keeps what they say.

Owns the processes and their lines. A member is killed by its own id and none outlives the block.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, List, NamedTuple, Optional

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name('group_member.py')
SECONDS = 120
STUCK_SECONDS = 20
REVOKED = 'revoked'
DEFAULTS = {
    'client': 'ours',
    'protocol': 'classic',
    'assignor': 'range',
    'commits': 'sync',
    'isolation': 'read_committed',
    'session_ms': 6000,
    'root': str(ROOT),
}


class Event(NamedTuple):
    """A line that a member said: when, in monotonic seconds, what, and the words behind it."""

    at: float
    what: str
    words: List[Any]


class MemberProcess:
    """A member: the process, and what it has said so far.

    Attributes: killed_at: monotonic seconds, None if it was not; was_ended: by who started it.
    """

    numbers = itertools.count(1)

    def __init__(self, python: Optional[str] = None, **options: Any) -> None:
        self.python = python
        self.options = {**DEFAULTS, **options}
        self.name = '%s-%d' % (self.options['client'], next(self.numbers))
        self.options['name'] = self.name
        self.events: List[Event] = []
        self.killed_at: Optional[float] = None
        self.was_ended = False
        self.process = subprocess.Popen(
            [python or sys.executable, '-I', str(PROGRAM), json.dumps(self.options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.complaints = b''
        self._readers = [
            threading.Thread(target=each, daemon=True) for each in (self._read, self._read_errors)
        ]
        for each in self._readers:
            each.start()

    def __repr__(self) -> str:
        return '<%s: %s>' % (self.name, [each[1:] for each in self.events[-3:]])

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                at, what, *words = json.loads(line)
            except ValueError:  # it was killed in the middle of it
                continue
            self.events.append(Event(at, what, words))

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.complaints = (self.complaints + line)[-4000:]

    @property
    def owned(self) -> set:
        """The partitions that it has, as it said."""
        found: set = set()
        for event in list(self.events):
            if event.what == 'assigned':
                found |= set(event.words[0])
            elif event.what in (REVOKED, 'lost'):
                found -= set(event.words[0])
            elif event.what == 'closed':
                found = set()
        return found

    @property
    def numbers_seen(self) -> List[int]:
        """The numbers of the records that it was handed, in their order."""
        return [n for each in list(self.events) if each.what == 'records' for n in each.words[2]]

    @property
    def errors(self) -> List[str]:
        """The errors that it met."""
        return [': '.join(each.words) for each in list(self.events) if each.what == 'error']

    def kill(self) -> None:
        """End it at once, with SIGKILL."""
        self.was_ended = True
        self.process.kill()
        self.process.wait(SECONDS)
        self.killed_at = time.monotonic()
        self._end()

    def stop(self, seconds: float = SECONDS) -> None:
        """Let it leave and end; SystemError with what it complained of if it does not."""
        self.was_ended = True
        if self.process.poll() is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.kill()
                raise SystemError(
                    '%r does not end\n%s' % (self, self.complaints.decode())
                ) from None
        self._end()
        if self.process.returncode:
            raise SystemError('%r failed\n%s' % (self, self.complaints.decode()))

    def _end(self) -> None:
        for each in self._readers:
            each.join(SECONDS)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


class Group:
    """Members in numbered places; one that was killed is followed by another in its place.

    Attributes: lives: all that ever were, in the order of their starts.
    """

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.lives: List[MemberProcess] = []
        self.places: List[MemberProcess] = []
        self.has_stopped = False
        self._lock = threading.Lock()  # places and lives, of killers and who stops them

    def __enter__(self) -> Group:
        return self

    def __exit__(self, *_: Any) -> None:
        self.has_stopped = True
        for each in self.places:
            if each.process.poll() is None:
                each.kill()

    def add(self, **options: Any) -> MemberProcess:
        """Start one more member; options win over those of the group."""
        member = MemberProcess(**{**self.options, **options})
        with self._lock:
            self.places.append(member)
            self.lives.append(member)
        return member

    def replace(self, place: int) -> None:
        """Start a member like the one that was killed in a place."""
        old = self.places[place]
        with self._lock:
            if not self.has_stopped:
                self.places[place] = MemberProcess(old.python, **old.options)
                self.lives.append(self.places[place])

    def stop(self) -> None:
        """Let all leave, one after the other."""
        with self._lock:
            self.has_stopped = True
        for each in self.places:
            each.stop()

    def wait(self, condition: Any, seconds: float = SECONDS) -> None:
        """Wait until something is so; AssertionError with what the members said last."""
        deadline = time.monotonic() + seconds
        while not condition():
            for each in self.places:
                is_over = each.process.poll() is not None and not each.was_ended
                assert not is_over, '%r\n%s' % (each, each.complaints.decode())
            self._replace_stuck()
            assert time.monotonic() < deadline, '%r\n%s' % (self.places, self.complaints)
            time.sleep(0.02)

    def _replace_stuck(self) -> None:
        """Restart members of kafka-python that joined and say nothing more.

        About one join in a hundred of 3.0.12, also when it is alone: after SyncGroup, when Metadata
        comes at the same moment, it neither goes on nor sends a heartbeat.
        """
        for place, each in enumerate(self.places):
            last = each.events[-1] if each.events else None
            if (
                each.options['client'] == 'kafka-python'
                and last is not None
                and last.what == REVOKED
                and last.at < time.monotonic() - STUCK_SECONDS
                and each.process.poll() is None
            ):
                each.kill()
                self.replace(place)

    def share(self, partitions: int) -> bool:
        """Whether the members have all partitions, each about as many, and none has one twice."""
        parts = [each.owned for each in self.places]
        sizes = [len(each) for each in parts]
        every = set().union(*parts)
        return sum(sizes) == len(every) == partitions and max(sizes) - min(sizes) <= 1

    @property
    def complaints(self) -> str:
        """What the members wrote to their standard error last."""
        return '\n'.join(each.complaints.decode(errors='replace') for each in self.places)

    @property
    def numbers_seen(self) -> List[int]:
        """The numbers of all records that were handed out to anybody."""
        return [number for each in list(self.lives) for number in each.numbers_seen]
