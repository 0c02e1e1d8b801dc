"""The README's first command: what it needs and shows, and what it says when it cannot."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import venv

import pytest

from servers import run
from servers.run import ROOT, Kafka, SetUpError

WRITES = "print('wrote a: partition 0, offset 1')\n"
READS = "print('read a: partition 0, offset 1')\n"


def first_command():
    """Return the words of the first command in the README."""
    text = (ROOT / 'README.rst').read_text(encoding='utf-8')
    command = re.search(r'(?m)^    (python3 .+?) *#', text).group(1)
    return command.split()


@pytest.fixture
def copy(tmp_path):
    """A copy of what the command may need, which is not all that a clone has."""
    files = ('test/__init__.py', 'test/environments.py', 'test/run.py')
    for name in ('kafka', 'servers', 'examples', *files):
        target = tmp_path / 'clone' / name
        if (ROOT / name).is_dir():
            without = shutil.ignore_patterns('__pycache__', '[0-9]*', 'kafka-bin')
            shutil.copytree(str(ROOT / name), str(target), ignore=without)
        else:
            target.parent.mkdir(exist_ok=True)
            shutil.copy(str(ROOT / name), str(target))
    return tmp_path / 'clone'


def test_the_first_command_needs_nothing_but_python(copy, tmp_path):
    """And it installs nothing: a Python without any package writes and reads."""
    venv.create(str(tmp_path / 'bare'), symlinks=True, with_pip=False)
    python, *words = first_command()
    before = {path.name for path in copy.iterdir()}
    done = subprocess.run(
        [str(tmp_path / 'bare' / 'bin' / python), *words],
        cwd=str(copy),
        env={'PATH': ''},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    text = done.stdout.decode()
    assert (done.returncode, done.stderr) == (0, b'')
    wrote, read = (re.findall('(?m)^%s (message .*)' % verb, text) for verb in ('wrote', 'read'))
    assert len(wrote) == 3
    assert read == wrote
    assert text.splitlines()[-1].startswith('done: ')
    assert 'an embedded Kafka 4.4' in text
    assert {path.name for path in copy.iterdir()} == before


@pytest.mark.parametrize(
    'words, real, embedded, bootstrap',
    [
        ([], None, '4.4', None),
        (['--embedded'], None, '4.4', None),
        (['--embedded', '0.8.2'], None, '0.8.2', None),
        (['--real'], '4.4.0', '4.4', None),
        (['--real', '0.8.0'], '0.8.0', '4.4', None),
        (['--release', '0.8.0'], '0.8.0', '4.4', None),
        (['--all'], 'all', '4.4', None),
        (['--bootstrap', 'host:9092'], None, '4.4', 'host:9092'),
    ],
)
def test_options(words, real, embedded, bootstrap):
    options = run.parse(words)
    assert (options.real, options.embedded, options.bootstrap) == (real, embedded, bootstrap)


def test_embedded_brokers_can_be_each_release_there_is():
    assert run.embedded_versions('0.8.2.2') == ['0.8.2.2']
    assert run.embedded_versions('all')[0] == '0.8.0'
    with pytest.raises(ValueError, match=r'7.*use one of 0\.8\.0'):
        run.embedded_versions('7')


@pytest.mark.parametrize('words', [['--real'], ['--real', '0.8.2.3'], ['--embedded', '7']])
def test_what_cannot_be_done_is_told_in_one_line(words, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv('PATH', str(tmp_path))
    monkeypatch.setattr(run, 'stop_on_signals', lambda: None)
    assert run.main(words) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith('NOT DONE: ')


@pytest.fixture
def show(monkeypatch, tmp_path):
    """Return a function that runs a program of these lines as the program."""

    def run_it(lines):
        (tmp_path / 'program.py').write_text(lines)
        monkeypatch.setattr(run, 'PROGRAM', str(tmp_path / 'program.py'))
        return run.show(Kafka('a Kafka', 'host:1'))

    return run_it


def test_a_topic_may_hold_more_than_was_written(show):
    assert show(WRITES + READS + READS.replace('1', '0')) == 'a Kafka'


@pytest.mark.parametrize(
    'lines',
    [
        WRITES,
        WRITES + READS.replace('1', '0'),
        WRITES + WRITES + READS,
        READS,
        WRITES + READS + 'raise SystemExit(3)',
    ],
    ids=['nothing read', 'another one', 'one of two', 'nothing written', 'failed'],
)
def test_a_program_that_does_not_read_what_it_wrote_has_failed(show, lines):
    with pytest.raises(SetUpError, match='a Kafka'):
        show(lines)


def test_it_was_python_that_ran(show, capsys):
    show(WRITES + READS + 'import sys; print(sys.executable)')
    assert sys.executable in capsys.readouterr().out
