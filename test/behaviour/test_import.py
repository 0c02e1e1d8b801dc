"""``import kafka`` is cheap, and what it offers is found where programs look for it.

Cost is measured in processes of their own, without ``site``, so that neither pytest nor the
environment counts. CPU time and peak memory are taken, not wall time, and the best of several runs,
so that a busy machine does not make the test fail.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from test.sources import ROOT

# What `import kafka` loads besides what an interpreter that runs `pass` has: all of it.
OWN = {'kafka', 'kafka.version'}
STANDARD = {
    '__future__',
    'importlib',
    'importlib._bootstrap',
    'importlib._bootstrap_external',
    'types',
    'warnings',
}

MOST_TIMES = 1.5
MAX_MEMORY_KIB = 14 * 1024
TRIES = 10

# Submodules that 0.9.5 programs reach as attributes after a bare `import kafka`.
SUBMODULES = [
    'kafka.client',
    'kafka.codec',
    'kafka.common',
    'kafka.conn',
    'kafka.consumer',
    'kafka.partitioner',
    'kafka.producer',
    'kafka.protocol',
    'kafka.util',
]


def in_new_process(program):
    """Run `program` in an interpreter that has loaded nothing else, and return what it prints."""
    lines = ['import sys', 'sys.path[:0] = %r' % [ROOT], program]
    command = [sys.executable, '-S', '-E', '-c', '\n'.join(lines)]
    return json.loads(subprocess.check_output(command))


def test_import_loads_an_exact_list_of_modules():
    loaded = set(
        in_new_process(
            'before = set(sys.modules)\n'
            'import kafka\n'
            'after = sorted(set(sys.modules) - before)\n'
            'import json; print(json.dumps(after))'
        )
    )
    assert {name for name in loaded if name.startswith('kafka')} == OWN
    assert loaded - OWN <= STANDARD


def test_import_is_quick():
    """It takes half of the processor time that the start of the interpreter takes, at most."""
    start, whole = [], []
    while len(whole) < TRIES and not (whole and min(whole) <= MOST_TIMES * min(start)):
        for program, spent in (('import time', start), ('import kafka, time', whole)):
            spent.append(in_new_process(program + '; print(1000 * time.process_time())'))
    assert min(whole) <= MOST_TIMES * min(start)


@pytest.mark.skipif(not os.path.exists('/proc/self/status'), reason='needs /proc')
def test_import_is_small():
    """The whole process never holds more than 14 MiB."""
    program = (
        'import kafka\n'
        'for line in open("/proc/self/status"):\n'
        '    if line.startswith("VmHWM:"): print(line.split()[1])'
    )
    assert in_new_process(program) <= MAX_MEMORY_KIB


@pytest.mark.parametrize('name', SUBMODULES)
def test_submodule_is_reached_from_the_package(name):
    program = 'import kafka\nimport json; print(json.dumps(%s.__name__))' % name
    assert in_new_process(program) == name


def test_public_names_are_real_and_say_where_they_live():
    """A pickled or documented object leads back to itself."""
    import kafka

    for name in kafka.__all__:
        thing = getattr(kafka, name)
        if hasattr(thing, '__name__'):
            assert thing.__module__.startswith('kafka.')
            assert getattr(sys.modules[thing.__module__], thing.__name__) is thing


def test_version():
    import kafka
    from kafka.version import __version__

    assert kafka.__version__ == __version__
