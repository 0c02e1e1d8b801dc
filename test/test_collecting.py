"""What is collected of a file does not depend on the files beside it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
#: Has tests with a parameter ``release`` that is no release of brokers.
UNIT = 'test/protocol/test_release.py'
#: Brings the hooks of test/integration/conftest.py.
ON_BROKERS = 'test/integration/test_failover_figure.py'

pytestmark = pytest.mark.once


def collected(*files):
    """Return the ids of the tests without brokers in some files."""
    command = [sys.executable, '-m', 'pytest', '--collect-only', '-q', '-m', 'not integration']
    found = subprocess.run([*command, *files], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return sorted(line for line in found.stdout.decode().splitlines() if '::' in line)


def test_files_on_brokers_leave_out_nothing_of_others():
    beside = [each for each in collected(UNIT, ON_BROKERS) if each.startswith(UNIT)]
    assert len(beside) > 30
    assert beside == collected(UNIT)
