"""The program in the README does what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.releases(some=('4.4.0',), since='0.8.1')]

ROOT = Path(__file__).resolve().parents[2]


def test_the_program_of_the_readme_reads_what_it_wrote(cluster):
    text = (ROOT / 'README.rst').read_text(encoding='utf-8')
    code = re.search(r'\.\. code:: python\n\n((?:    .*\n|\n)+)', text).group(1)
    program = re.sub(r'(?m)^    ', '', code)
    assert '127.0.0.1:9092' in program
    done = subprocess.run(
        [sys.executable, '-W', 'error', '-'],
        input=program.replace('127.0.0.1:9092', cluster.bootstrap).encode(),
        cwd=str(ROOT),
        env={'PYTHONPATH': str(ROOT)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b'')
    assert re.findall(rb"b'(\w+)'", done.stdout) in ([b'hello', b'world'], [b'world', b'hello'])
