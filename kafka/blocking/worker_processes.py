"""Child processes that feed one queue, and are restarted when they die.

Used by the multiprocess consumer, which decides what the children do and send. No process ever
waits for a killed one: shared memory has no locks, because a killed process would never release
them, and each pipe has one writer. Children never run the program's main module. Called in the
caller's thread; one thread of its own ends the children.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import queue
import signal
import sys
import threading
import time
import types
import warnings
import weakref
from collections import deque
from multiprocessing import connection
from multiprocessing.reduction import ForkingPickler
from typing import Any, Callable, Deque, Dict, Iterator, List, Optional, Sequence, Tuple

from kafka.util import ReentrantTimer

log = logging.getLogger('kafka.consumer.multiprocess')

# How often a child checks whether it has to exit, or its parent is gone.
WATCH_INTERVAL_MS = 200
# How long to sleep between checks of a value that has no lock to wait for; longer each time.
POLL_SECONDS = 0.01
LONGEST_POLL_SECONDS = 0.1
# How long a child has to exit by itself, then after a signal.
LEAVE_SECONDS = 1.0
SIGNAL_SECONDS = 1.0
# How long a started child may take to report that it is ready; after that, callers no longer wait
# for it.
START_SECONDS = 30.0
LONGEST_PAUSE_SECONDS = 60
# The longest wait without checking whether a signal handler has ended everything.
LONGEST_WAIT_SECONDS = 1.0


def start_method() -> str:
    """Return the start method: fork if available, unless the program has set another.

    A program that used multiprocessing without setting a start method has the platform's default.
    """
    methods = multiprocessing.get_all_start_methods()  # the default comes first
    chosen = multiprocessing.get_start_method(allow_none=True)
    if 'fork' in methods and chosen in (None, methods[0]):
        return 'fork'
    return chosen or methods[0]


def check_sendable(method: str, things: Dict[str, Any]) -> None:
    """Raise TypeError naming the first object that cannot be sent to a child.

    Arguments: method: how children are started; fork needs no sending; things: {name: object}.
    """
    if method == 'fork':
        return
    for name, thing in things.items():
        try:
            with _main_hidden():
                ForkingPickler.dumps(thing)
        except Exception as error:
            raise TypeError(
                '%s cannot be sent to a process started by %r: %s. Processes started by fork need'
                ' no sending; with %r, %s must be of a class or function that is defined in'
                ' another module than the main program, which is not run again'
                % (name, method, error, method, name)
            ) from error


@contextlib.contextmanager
def _main_hidden() -> Iterator[None]:
    """Keep multiprocessing from making children import the main module.

    Programs of 2015 have no ``if __name__ == '__main__'``: imported again, they would run again.
    """
    main = sys.modules['__main__']
    sys.modules['__main__'] = types.ModuleType('__main__')
    try:
        yield
    finally:
        sys.modules['__main__'] = main


@contextlib.contextmanager
def _fork_unwarned() -> Iterator[None]:
    """Suppress the warning of Python 3.12 about fork in a process with several threads.

    It is about locks held by other threads at that moment. A child uses objects made for it.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings('ignore', '.*fork', DeprecationWarning)
        yield


class Flag:
    """A flag shared by processes: like an Event, but without a lock.

    Arguments: context: of multiprocessing.
    """

    def __init__(self, context: Any) -> None:
        self._value = context.RawValue('b', 0)

    def __repr__(self) -> str:
        return '<Flag %s>' % ('set' if self.is_set() else 'not set')

    def is_set(self) -> bool:
        """Return True if the flag is set."""
        return bool(self._value.value)

    def set(self) -> None:
        """Set it, for all processes."""
        self._value.value = 1

    def clear(self) -> None:
        """Clear it, for all processes."""
        self._value.value = 0

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Wait until it is set, at most `timeout` seconds (None: forever); return True if it is."""
        deadline = None if timeout is None else time.monotonic() + timeout
        pause = POLL_SECONDS
        while not self.is_set():
            left = pause if deadline is None else deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(pause, left))
            pause = min(2 * pause, LONGEST_POLL_SECONDS)
        return True


class _Counters:
    """Numbers shared by parent and children: one of each per child, each with one writer."""

    def __init__(self, context: Any, count: int) -> None:
        self.sent = context.RawArray('q', count)  # items sent, written by the child
        self.ready = context.RawArray('b', count)  # 1 once the child is ready, written by the child
        self.taken = context.RawArray('q', count)  # items taken, written by the parent


class Link:
    """The child's side of the connection to its parent: sends items, and checks when to exit."""

    def __init__(
        self, index: int, limit: int, writer: Any, leave: Flag, counters: _Counters, parent: int
    ) -> None:
        self.index = index
        self.limit = limit
        self._writer = writer
        self._leave = leave
        self._counters = counters
        self._parent = parent  # expected id of the parent process; 0: the current one

    def say_ready(self) -> None:
        """Notify the parent that this child is ready."""
        self._counters.ready[self.index] = 1

    def send(self, items: List[Any]) -> None:
        """Send items to the parent; wait while `limit` of them are not taken yet."""
        counters, index = self._counters, self.index
        pause = POLL_SECONDS
        while items:
            room = self.limit - (counters.sent[index] - counters.taken[index])
            if room <= 0:
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_POLL_SECONDS)
                continue
            part, items, pause = items[:room], items[room:], POLL_SECONDS
            counters.sent[index] += len(part)
            self._writer.send(part)

    def leaving(self) -> bool:
        """Return True if the parent wants this child to exit."""
        return self._leave.is_set()

    def rest(self, seconds: float) -> None:
        """Sleep for some seconds, or until it is time to exit."""
        self._leave.wait(seconds)

    def watch(self) -> None:
        """Start a timer that ends this process as soon as it has to exit, or its parent is gone."""
        self._parent = self._parent or os.getppid()
        ReentrantTimer(WATCH_INTERVAL_MS, self._leave_in_time).start()

    def _leave_in_time(self) -> None:
        # The main thread may be waiting for a broker, or for space in the pipe. Nothing is lost
        # with it: what it did not send is fetched again.
        if self.leaving() or self._is_orphan():
            os._exit(0)

    def _is_orphan(self) -> bool:
        parent = multiprocessing.parent_process()
        return os.getppid() != self._parent or (parent is not None and not parent.is_alive())


def _run_child(
    link: Link, inherited: Sequence[Any], target: Callable[..., None], arguments: Tuple[Any, ...]
) -> None:
    """Run a child process: close inherited pipes, watch the parent, call the target."""
    _leave_signals_to_the_parent()
    for reader in inherited:
        reader.close()
    link.watch()
    try:
        target(link, *arguments)
    except BrokenPipeError:
        log.debug('the parent of process %d is gone', os.getpid())


def _leave_signals_to_the_parent() -> None:
    """Disable the program's signal handlers, which a forked child inherits.

    Ctrl-C reaches the children as well: the parent ends them, with SIGTERM.
    """
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


class _Child:
    """A child process as its parent sees it."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.process: Any = None
        self.reader: Any = None  # None: not running
        self.started_at = 0.0
        self.failures = 0  # since it last sent something
        self.again_at = 0.0  # when to restart it, monotonic seconds


class Crew:
    """Child processes and the one queue that they feed, which is read like a queue.Queue.

    Arguments:
        target: what each child runs, as ``target(link, *arguments)``; a function of a module.
        arguments: called here with a child's index before each start; returns its arguments.
        count: the number of children.
        capacity: the maximum number of items not taken yet, of all children together.
        leave: set by end(); children exit when it is set.
        method: how to start them, as returned by start_method().

    A child that ends unexpectedly is logged and restarted: at once, then after 1, 2, 4 … 60 s while
    it sends nothing. All this happens inside get(), so that no thread is needed for it. Only the
    process that created the crew can start and end children.
    """

    def __init__(
        self,
        target: Callable[..., None],
        arguments: Callable[[int], Tuple[Any, ...]],
        count: int,
        capacity: int,
        leave: Flag,
        method: str,
    ) -> None:
        self._target = target
        self._arguments = arguments
        self._method = method
        self._context: Any = multiprocessing.get_context(method)
        self._limit = max(1, capacity // max(1, count))
        self._capacity = capacity
        self._leave = leave
        self._counters = _Counters(self._context, count)
        self._children = [_Child(index) for index in range(count)]
        # Items with the index of the child that sent each; None: added by put().
        self._backlog: Deque[Tuple[Optional[int], Any]] = deque()
        self._owner = os.getpid()
        # This queue wakes the thread that ends the children. Filled by end(), or by a finalizer,
        # which may run at any point of any thread and must neither wait nor take a lock: put() does
        # neither.
        self._told: queue.SimpleQueue[None] = queue.SimpleQueue()
        weakref.finalize(self, self._told.put, None)

    def __repr__(self) -> str:
        return '<Crew children=%d items=%d>' % (len(self._children), self.qsize())

    @property
    def processes(self) -> List[Any]:
        """The processes of the children, running or ended."""
        return [child.process for child in self._children]

    # ------------------------------------------------------------ life

    def start(self) -> None:
        """Start all children; if one cannot be started, end the others and raise its error."""
        try:
            for child in self._children:
                self._start(child)
            threading.Thread(
                target=_end_when_told,
                args=(self._told, self._children, self._leave, self._owner),
                name='kafka consumer end',
                daemon=True,
            ).start()
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """End all children, within seconds. No effect when repeated, or in another process."""
        end_children(self._children, self._leave, self._owner)
        self._told.put(None)

    def restart(self, index: int, is_stale: Callable[[Any], bool]) -> None:
        """Restart a child now, with new arguments, and drop the queued items that are stale."""
        child = self._children[index]
        self._kill(child)
        self._backlog = deque(entry for entry in self._backlog if not is_stale(entry[1]))
        child.again_at = 0.0
        self._start_again()

    def is_starting(self) -> bool:
        """Return True if a child was started less than 30 s ago and is not ready yet."""
        now = time.monotonic()
        return not self._leave.is_set() and any(
            child.reader is not None
            and not self._counters.ready[child.index]
            and now - child.started_at < START_SECONDS
            for child in self._children
        )

    def _start(self, child: _Child) -> None:
        index, counters = child.index, self._counters
        arguments = self._arguments(index)
        counters.sent[index] = sum(entry[0] == index for entry in self._backlog)
        counters.taken[index] = counters.ready[index] = 0
        forks = self._method == 'fork'
        reader, writer = self._context.Pipe(duplex=False)
        try:
            link = Link(
                index,
                self._limit,
                writer,
                self._leave,
                counters,
                # The parent of a process started by a fork server is the fork server.
                0 if self._method == 'forkserver' else os.getpid(),
            )
            readers = [other.reader for other in self._children if other.reader is not None]
            process = self._context.Process(
                target=_run_child,
                args=(link, [reader, *readers] if forks else (), self._target, arguments),
                name='kafka consumer %d' % index,
                daemon=True,
            )
            with _fork_unwarned() if forks else _main_hidden():
                process.start()
        except BaseException:
            reader.close()
            raise
        finally:
            # The child holds the writer now. With the last writer gone, the reader sees the end.
            writer.close()
        child.process, child.reader, child.started_at = process, reader, time.monotonic()

    def _kill(self, child: _Child) -> None:
        """Kill a running child at once; nothing is lost, since unsent items are fetched again."""
        reader, child.reader = child.reader, None
        if reader is not None:
            reader.close()
            child.process.kill()
            child.process.join(SIGNAL_SECONDS)

    # ------------------------------------------------------------ the queue

    def get(self, block: bool = True, timeout: Optional[float] = None) -> Any:
        """Return the next item; wait for it if `block`, at most `timeout` seconds (None: forever).

        Raises: queue.Empty if no item arrives in time, and always after the children were ended.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._backlog:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not block:
                left = 0.0
            if self._leave.is_set() or (not self._gather(left) and left == 0.0):
                raise queue.Empty
        index, item = self._backlog.popleft()
        if index is not None:
            self._counters.taken[index] += 1
        return item

    def get_nowait(self) -> Any:
        """Return the next item if one is queued; raise queue.Empty otherwise."""
        return self.get(block=False)

    def put(self, item: Any, block: bool = True, timeout: Optional[float] = None) -> None:
        """Append an item from this process, after the items received so far."""
        self._backlog.append((None, item))

    def qsize(self) -> int:
        """Return the number of items not taken yet."""
        counters = self._counters
        here = sum(index is None for index, _ in self._backlog)
        return here + sum(map(int.__sub__, counters.sent, counters.taken))

    def empty(self) -> bool:
        """Return True if no item is queued."""
        return self.qsize() == 0

    def full(self) -> bool:
        """Return True if the children wait for items to be taken."""
        return self.qsize() >= self._capacity

    def waiting(self) -> List[Any]:
        """Return the items received and not taken yet, in order."""
        return [item for _, item in self._backlog]

    def _gather(self, seconds: Optional[float]) -> bool:
        """Restart ended children, wait at most `seconds` for items; return True if any arrived."""
        self._start_again()
        wait = LONGEST_WAIT_SECONDS if seconds is None else min(seconds, LONGEST_WAIT_SECONDS)
        sources: Dict[Any, _Child] = {}
        for child in self._children:
            if child.reader is not None:
                sources[child.reader] = sources[child.process.sentinel] = child
            else:
                wait = min(wait, max(0.0, child.again_at - time.monotonic()))
        if not sources:
            time.sleep(wait)
            return False
        try:
            ready = connection.wait(list(sources), wait)
        except (OSError, ValueError):
            if not self._leave.is_set():
                raise
            return False  # a signal handler has ended everything, and closed the pipes
        received = False
        for child in dict.fromkeys(sources[source] for source in ready):
            if child.reader is not None:
                received = self._receive(child, child.reader) or received
        return received

    def _receive(self, child: _Child, reader: Any) -> bool:
        """Receive items of a child, or handle its end; return True if items were received."""
        try:
            # With nothing to read, the reader became ready because the child has ended.
            items = reader.recv() if reader.poll() else None
            if items is not None:
                self._backlog.extend((child.index, item) for item in items)
        except (EOFError, OSError):
            items = None
        except BaseException:
            # Interrupted in the middle, as by a signal handler that raises: the rest of the pipe
            # cannot be decoded. The restarted child sends again what did not arrive.
            self._kill(child)
            raise
        if items is None:
            self._bury(child)
            return False
        child.failures = 0
        return True

    def _bury(self, child: _Child) -> None:
        """Close a child that ended by itself, and schedule its restart."""
        reader, child.reader = child.reader, None
        if reader is None or self._leave.is_set():
            return
        reader.close()
        child.process.join(SIGNAL_SECONDS)
        self._postpone(child, 'ended with code %s' % child.process.exitcode)

    def _postpone(self, child: _Child, what: object) -> None:
        pause = min(2 ** (child.failures - 1), LONGEST_PAUSE_SECONDS) if child.failures else 0
        child.failures = min(child.failures + 1, 10)
        child.again_at = time.monotonic() + pause
        log.error('process %d %s, starting it again in %d s', child.index, what, pause)

    def _start_again(self) -> None:
        """Restart the children that have ended and whose pause is over."""
        for child in self._children:
            if child.reader is None and time.monotonic() >= child.again_at:
                if self._leave.is_set():
                    return
                try:
                    self._start(child)
                except OSError as error:
                    self._postpone(child, 'cannot be started: %s' % error)


def _end_when_told(told: Any, children: Sequence[_Child], leave: Flag, owner: int) -> None:
    """Wait until a crew was ended or garbage-collected, and end its children."""
    told.get()
    end_children(children, leave, owner)


def end_children(children: Sequence[_Child], leave: Flag, owner: int) -> None:
    """Ask children to exit; terminate, then kill those that do not.

    Arguments: owner: id of the process whose children they are; in another process, no effect.
    """
    if os.getpid() != owner:
        return
    leave.set()
    processes = [child.process for child in children if child.process is not None]
    for method, seconds in (
        (None, LEAVE_SECONDS),
        ('terminate', SIGNAL_SECONDS),
        ('kill', SIGNAL_SECONDS),
    ):
        alive = _alive(processes, 0.0)
        if method is not None:
            for process in alive:
                getattr(process, method)()
        if alive:
            _alive(alive, seconds)
    for child in children:
        reader, child.reader = child.reader, None
        if reader is not None:
            reader.close()
        if child.process is not None:
            child.process.join(0)


def _alive(processes: Sequence[Any], seconds: float) -> List[Any]:
    """Return the processes that have not ended within `seconds`; returns early if all have."""
    # is_alive() stays True if the program ignores SIGCHLD.
    alive = {process.sentinel: process for process in processes}
    deadline = time.monotonic() + seconds
    while alive:
        ended = connection.wait(list(alive), max(0.0, deadline - time.monotonic()))
        for sentinel in ended:
            alive.pop(sentinel).join(SIGNAL_SECONDS)
        if not ended:
            break
    return list(alive.values())
