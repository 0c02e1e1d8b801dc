"""Whole programs in the style of 2013 to 2021, unchanged, as subprocesses; other clients judge.

The programs stand in test/programs, what is expected of them in programs.py and its tables.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from servers.cluster import free_ports
from test.integration import programs_09, programs_09_consumers, programs_1_2, programs_later
from test.integration.judges import BrokerOffsets, Topics, offsets_of, pair
from test.integration.programs import ANY, MODULE, Program

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / 'test' / 'programs'
SECONDS = 60
TABLE = [
    *programs_09.PROGRAMS,
    *programs_09_consumers.PROGRAMS,
    *programs_later.PROGRAMS,
    *programs_1_2.PROGRAMS,
]


class Run(NamedTuple):
    """What came of one start."""

    code: int
    printed: str
    logged: str


def start(program, names):
    """Start a program as its row says and wait for its end."""
    folder = Path(names['dir'])
    target = program.file if program.start == MODULE else str(FOLDER / program.file)
    environment = {
        # Children inherit it, as multiprocessing's do.
        'PYTHONWARNINGS': 'error::ResourceWarning' if program.closes else '',
        'PYTHONDONTWRITEBYTECODE': '1',
        'PYTHONPATH': '%s:%s' % (ROOT, FOLDER) if program.start == MODULE else str(ROOT),
        **{name: text % names for name, text in program.environment.items()},
    }
    process = subprocess.Popen(
        [sys.executable, *program.start, target, *(program.arguments % names).split()],
        cwd=str(folder),
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # a group of its own, children included
    )
    try:
        # Children have the same pipes: one that stays behind runs into the time limit too.
        printed, logged = process.communicate(program.stdin.encode(), SECONDS)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return Run(process.returncode, printed.decode(), logged.decode())


def as_written(messages):
    """Return messages as a table shows them: no key, no pair."""
    return [value if key is None else (key, value) for key, value in messages]


def compare(printed, expected, in_any_order):
    """Compare what a program printed with the text or, behind ``re:``, the pattern of its row."""
    if in_any_order:
        printed = ''.join(sorted(printed.splitlines(True)))
    if expected.startswith('re:'):
        assert re.fullmatch(expected[3:], printed, re.DOTALL), printed
    else:
        assert printed == expected


@pytest.fixture
def names(cluster, new_name, tmp_path):
    """The words that a row may use, and what they mean in this test."""
    found = {word: new_name() for word in ('topic', 'other', 'new', 'newer', 'group', 'group2')}
    found['hosts'] = found['broker'] = cluster.bootstrap
    found['dead'] = '127.0.0.1:%d' % free_ports(1)[0]
    found['dir'] = str(tmp_path)
    return found


def prepare(cluster, program, names):
    """Make the topics, messages, offsets and files that a program finds."""
    for word in ('topic', 'other'):
        if word == 'topic' or word in program.finds or '%%(%s)' % word in str(program):
            cluster.create_topic(names[word], 2)
    if program.finds:
        Topics(cluster).fill({names[word]: found for word, found in program.finds.items()})
    for word, offsets in program.stored.items():
        judge = BrokerOffsets(cluster) if program.in_broker else offsets_of(cluster)
        judge.store(names[word], names['topic'], offsets)
    for file, text in program.files.items():
        Path(names['dir'], file).write_text(text % names)


def judge(cluster, program, names, printed):
    """Let other clients look at what a program left behind."""
    for word, expected in program.leaves.items():
        left = Topics(cluster).contents(names[word], sum(map(len, expected.values())))
        if ANY in expected:
            every = [message for messages in left.values() for message in messages]
            order = [(key or b'', value) for key, value in map(pair, expected[ANY])]
            assert sorted((key or b'', value) for key, value in every) == sorted(order)
        else:
            assert {p: as_written(found) for p, found in left.items() if p in expected} == expected
            assert not any(found for p, found in left.items() if p not in expected)
    for word in program.absent:
        assert names[word] not in cluster.metadata().topics
    if program.wrote:
        program.wrote(printed, Topics(cluster).contents(names['topic']))
    for word, offsets in program.commits.items():
        assert offsets_of(cluster).stored(names[word], names['topic'], [0, 1]) == offsets


@pytest.mark.integration
@pytest.mark.parametrize(
    'program',
    [
        pytest.param(row, id=row.id, marks=pytest.mark.releases(since=row.since, some=row.some))
        for row in TABLE
    ],
)
def test_program_runs_as_it_is(cluster, program, names):
    prepare(cluster, program, names)
    for expected in program.outputs:
        done = start(program, names)
        assert 'Traceback' not in done.logged, done.logged
        assert 'Warning: ' not in done.logged, done.logged
        assert done.code == program.code, done
        compare(done.printed, expected % names, program.sort)
        assert re.fullmatch(program.logs, done.logged), done.logged
    judge(cluster, program, names, done.printed)


# --- the harness and the table ------------------------------------------------------------------


@pytest.mark.parametrize(
    'printed, expected, in_any_order, same',
    [
        ('a\nb\n', 'a\nb\n', False, True),
        ('b\na\n', 'a\nb\n', False, False),
        ('b\na\n', 'a\nb\n', True, True),
        ('a\nb\nb\n', 'a\nb\n', True, False),
        ('a 1\nb\n', 're:a \\d\n.*', False, True),
        ('a 1\nb\n', 're:a \\d\n', False, False),
    ],
)
def test_what_is_printed_is_compared_to_the_end(printed, expected, in_any_order, same):
    if same:
        compare(printed, expected, in_any_order)
    else:
        with pytest.raises(AssertionError):
            compare(printed, expected, in_any_order)


@pytest.mark.parametrize(
    'text, code, printed, logged',
    [
        ('import sys; print(sys.argv[1]); sys.exit(3)', 3, 'a-topic\n', ''),
        ('import sys; sys.stderr.write(sys.stdin.read())', 0, '', 'said'),
        ('open(__file__)', 0, '', 're:.*ResourceWarning.*'),
    ],
)
def test_a_program_is_started_as_its_owner_would(tmp_path, text, code, printed, logged):
    (tmp_path / 'program.py').write_text(text)
    row = Program(str(tmp_path / 'program.py'), '%(topic)s', stdin='said')
    done = start(row, {'dir': str(tmp_path), 'topic': 'a-topic'})
    assert (done.code, done.printed) == (code, printed)
    compare(done.logged, logged, False)


def test_a_program_that_does_not_end_is_killed_with_its_children(tmp_path, monkeypatch):
    monkeypatch.setattr('test.integration.test_programs.SECONDS', 1)
    (tmp_path / 'program.py').write_text('import os, time\nos.fork()\ntime.sleep(60)')
    row = Program(str(tmp_path / 'program.py'), '')
    with pytest.raises(subprocess.TimeoutExpired):
        start(row, {'dir': str(tmp_path)})


def test_every_program_is_in_the_table():
    files = {path.name for path in FOLDER.glob('*.py')}
    rows = {row.file for row in TABLE}
    assert files == {name for name in rows if name.endswith('.py')}
    modules = {name for name in rows if not name.endswith('.py')}
    packages = {path.parent.name for path in FOLDER.glob('*/__init__.py')}
    assert {name.split('.')[0] for name in modules} == packages


def test_every_row_has_a_name_of_its_own():
    ids = [row.id for row in TABLE]
    assert sorted(set(ids)) == sorted(ids)


def test_programs_are_small():
    for path in FOLDER.glob('*.py'):
        lines = path.read_text(encoding='utf-8').splitlines()
        assert 10 <= len(lines) <= 80, path
