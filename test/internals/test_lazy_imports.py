"""kafka.internals.lazy_imports: what is imported late does not block a forked process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading

import pytest

from kafka.internals.lazy_imports import LateModule, import_late
from test.sources import ROOT


def test_a_module_is_imported():
    assert import_late('kafka.structs') is sys.modules['kafka.structs']


def test_a_module_that_is_not_there_is_an_import_error():
    with pytest.raises(ImportError):
        import_late('kafka.nothing_of_this_name')


def test_what_stands_for_a_module_has_what_that_has():
    assert LateModule('kafka.structs').TopicPartition('t', 1).partition == 1
    with pytest.raises(AttributeError, match='nothing'):
        _ = LateModule('kafka.structs').nothing


def test_a_producer_without_tls_does_not_import_what_that_needs():
    program = """
        import sys
        from kafka import KafkaProducer
        KafkaProducer(bootstrap_servers='127.0.0.1:1', api_version=(2, 8)).close(timeout=0)
        print([name for name in ('inspect', 'ssl', 'tempfile') if name in sys.modules])
    """
    command = [sys.executable, '-c', textwrap.dedent(program)]
    assert subprocess.check_output(command, cwd=str(ROOT), timeout=60).strip() == b'[]'


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='this system has no fork')
def test_a_process_forked_while_a_thread_imports_can_import_the_same(tmp_path):
    """The child would wait for a thread that only the parent has."""
    (tmp_path / 'slow.py').write_text("""
import time
import started
started.event.set()
time.sleep(0.1)
""")
    (tmp_path / 'started.py').write_text('import threading\nevent = threading.Event()\n')
    program = """
        import os, signal, threading, warnings
        import started
        from kafka.internals.lazy_imports import LateModule, import_late
        warnings.simplefilter('ignore', DeprecationWarning)  # 3.12 on: a fork with threads
        thread = threading.Thread(target=import_late, args=('slow',))
        thread.start()
        started.event.wait()
        child = os.fork()
        if not child:
            signal.alarm(5)
            import_late('slow')
            os._exit(0)
        thread.join()
        raise SystemExit(os.waitpid(child, 0)[1])
    """
    done = subprocess.run(
        [sys.executable, '-c', textwrap.dedent(program)],
        env={**os.environ, 'PYTHONPATH': os.pathsep.join([ROOT, str(tmp_path)])},
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b'')


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='there is no fork')
def test_threads_of_a_forked_process_can_import():
    child = os.fork()
    if not child:
        thread = threading.Thread(target=import_late, args=('json',), daemon=True)
        thread.start()
        thread.join(20)
        os._exit(thread.is_alive())
    assert os.waitpid(child, 0)[1] == 0
