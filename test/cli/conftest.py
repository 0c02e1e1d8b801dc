"""Programs in files, run by the interpreter itself and by ``kafka run``."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from typing import NamedTuple

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Ended(NamedTuple):
    """How a process ended: its exit status (negative for a signal) and what it wrote."""

    status: int
    out: str
    err: str


class Programs:
    """A directory of programs."""

    def __init__(self, directory):
        self.directory = directory

    def write(self, files=(), **modules):
        """Write files, {path: text or bytes}, and modules, whose paths are their names and .py."""
        files = {**dict(files), **{name + '.py': source for name, source in modules.items()}}
        for name, source in files.items():
            path = self.directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(source, str):
                source = textwrap.dedent(source).encode()
            path.write_bytes(source)

    def plain(self, *args, **options):
        """Run ``python ARGS``."""
        return self._run([], args, **options)

    def ours(self, *args, **options):
        """Run ``python -m kafka run ARGS``."""
        return self._run(['-m', 'kafka', 'run'], args, **options)

    def _run(self, launcher, args, flags=(), stdin=b'', env=()):
        environment = {
            k: v for k, v in os.environ.items() if not k.startswith(('KAFKA_LEGACY', 'PYTHON'))
        }
        environment.update(env, PYTHONPATH=ROOT)
        process = subprocess.run(
            [sys.executable, *flags, *launcher, *args],
            cwd=self.directory,
            env=environment,
            input=stdin,
            capture_output=True,
            timeout=60,
        )
        out, err = (b.decode('utf-8', 'backslashreplace') for b in (process.stdout, process.stderr))
        return Ended(process.returncode, out, err)

    def check_same(self, *args, **options):
        """Run a program both ways, check that nothing differs, and return how it ended."""
        plain = self.plain(*args, **options)
        assert self.ours(*args, **options) == plain
        return plain


@pytest.fixture
def programs(tmp_path):
    return Programs(tmp_path)


def ended_with(status, capsys, main, args):
    """Return what is said, with the usage first, when a command line ends a program at once."""
    with pytest.raises(SystemExit) as ended:
        main(args)
    assert ended.value.code == status
    out, err = capsys.readouterr()
    shown, empty = (err, out) if status else (out, err)
    assert empty == ''
    assert shown.startswith('usage: python -m kafka')
    return shown
