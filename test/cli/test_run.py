"""``python -m kafka run``: the command line, and programs that need it."""

from __future__ import annotations

import json
import re
import zipfile

import pytest

from kafka import __main__ as command_line
from kafka.cli import run
from test.cli.conftest import ended_with

# --- the command line ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    'args, reason', [([], 'COMMAND'), (['walk'], "'walk'"), (['-x'], 'COMMAND')]
)
def test_what_is_no_command_is_refused_with_the_usage(capsys, args, reason):
    assert reason in ended_with(2, capsys, command_line.main, args)


@pytest.mark.parametrize(
    'args, words',
    [
        (['-h'], ['run  ', 'broker  ']),
        (['--help'], ['run  ', 'broker  ']),
        (
            ['run', '-h'],
            ['-m MODULE', '--dialect', '--text ENCODING', '--no-text', 'kafka-python 0.9'],
        ),
        (['run', '--no-text', '--help', 'x.py'], ['-m MODULE [ARGS ...]', 'PROGRAM [ARGS ...]']),
    ],
)
def test_help_is_shown(capsys, args, words):
    shown = ended_with(0, capsys, command_line.main, args)
    assert [word for word in words if word not in shown] == []


@pytest.mark.parametrize(
    'args, reason',
    [
        ([], 'expected a program or -m MODULE'),
        (['-m'], 'expected a program or -m MODULE'),
        (['--text'], '--text: expected one argument'),
        (['--text', 'klingon', 'x.py'], "--text: expected an encoding of text, got 'klingon'"),
        (['--text', 'hex', 'x.py'], "--text: expected an encoding of text, got 'hex'"),
        (['--text=', 'x.py'], 'expected an encoding'),
        (['--dialect', '7', 'x.py'], "--dialect: invalid choice: '7'"),
        (['--verbose', 'x.py'], '--verbose'),
        (['--dia', '0.9.5', 'x.py'], '--dia'),
        (['-x', 'x.py'], '-x'),
        (['-1'], '-1'),
        (['-m=x'], '-m=x'),
        (['--text', 'utf-8'], 'expected a program'),
        (['--no-text'], 'expected a program'),
        (['--'], 'expected a program'),
    ],
)
def test_wrong_command_lines_are_told(capsys, args, reason):
    assert reason in ended_with(2, capsys, run.main, args)


@pytest.mark.parametrize(
    'args, command',
    [
        (['x.py'], ('x.py', [], False, None, None)),
        (['x.py', '-m', '--text'], ('x.py', ['-m', '--text'], False, None, None)),
        (['-m', 'x', '--no-text'], ('x', ['--no-text'], True, None, None)),
        (['--no-text', 'x.py'], ('x.py', [], False, None, '')),
        (['--text', 'latin-1', 'x.py'], ('x.py', [], False, None, 'latin-1')),
        (['--dialect=0.9.5', '--text=utf-16', 'a=b'], ('a=b', [], False, '0.9.5', 'utf-16')),
        (['-', 'x'], ('-', ['x'], False, None, None)),
        (['--', '--odd'], ('--odd', [], False, None, None)),
        (['x.py', '-h', '--', 'a'], ('x.py', ['-h', '--', 'a'], False, None, None)),
        (['-m', 'x', '-h', '--text', 'y'], ('x', ['-h', '--text', 'y'], True, None, None)),
        (['-m', 'x', 'a', '--', 'b', '-c'], ('x', ['a', '--', 'b', '-c'], True, None, None)),
        (['--', '-m', 'x'], ('-m', ['x'], False, None, None)),
        (['--no-text', '-m', 'x', 'x.py'], ('x', ['x.py'], True, None, '')),
        (['--text', 'utf-8', 'x.py', '-'], ('x.py', ['-'], False, None, 'utf-8')),
    ],
)
def test_what_follows_the_program_is_its_own(args, command):
    assert run.parse(args) == command


def test_the_command_gets_its_arguments_as_they_are(monkeypatch):
    got = []
    monkeypatch.setattr(run, 'run_path', lambda target, args: got.append((target, args)))
    monkeypatch.setattr(run, 'run_module', lambda target, args: got.append((target, args)))
    monkeypatch.setattr(run, 'install', int)
    monkeypatch.setenv('KAFKA_LEGACY_TEXT', 'utf-8')
    for words in (['--', '--odd.py', '--', '-h'], ['-m', 'timeit', '--', '-n', '1']):
        assert command_line.main(['run', *words]) == 0
    assert got == [('--odd.py', ['--', '-h']), ('timeit', ['--', '-n', '1'])]


def test_without_arguments_the_status_is_2(programs):
    ended = programs.plain('-m', 'kafka')
    assert (ended.status, ended.out) == (2, '')
    assert ended.err.startswith('usage: python -m kafka [-h] COMMAND')


# --- switches -----------------------------------------------------------------------------------

SWITCHES = """
    import json, os, sys
    from kafka import util
    print(json.dumps([util._TextMode.encoding, os.environ.get('KAFKA_LEGACY_DIALECT')]))
"""


@pytest.mark.parametrize(
    'args, env, text, dialect',
    [
        ([], {}, 'utf-8', None),
        (['--no-text'], {}, None, None),
        (['--text', 'latin-1'], {}, 'latin-1', None),
        ([], {'KAFKA_LEGACY_TEXT': 'latin-1'}, 'latin-1', None),
        (['--text', 'utf-8'], {'KAFKA_LEGACY_TEXT': 'latin-1'}, 'utf-8', None),
        (['--no-text'], {'KAFKA_LEGACY_TEXT': 'latin-1'}, None, None),
        (['--dialect', '0.9.5'], {}, 'utf-8', '0.9.5'),
    ],
)
def test_switches_reach_the_program(programs, args, env, text, dialect):
    programs.write(program=SWITCHES)
    ended = programs.ours(*args, 'program.py', env=env)
    assert json.loads(ended.out) == [text, dialect]


def test_started_alone_the_program_has_none_of_them(programs):
    programs.write(program=SWITCHES)
    assert json.loads(programs.plain('program.py').out) == [None, None]


# --- programs -----------------------------------------------------------------------------------

CALLEES = """
    class Producer(object):
        def __init__(self, client, async=False, **options):
            self.async = async
            self.options = options

        def async_send(self): return self.async

    def options(**options): return options
"""
OLD_PROGRAM = """
    # A comment about async.
    import sys
    from callees import Producer, options
    producer = Producer(None, async=True, batch_send=True)
    print(producer.async, producer.options, options(async=1, await=2), sys.argv)

    async def today(x):
        async with x as y:
            return [z async for z in y], await y

    def fail(async=0):
        return 1 / async

    fail(async=producer.async - 1)
"""


@pytest.fixture
def old(programs):
    programs.write(program=OLD_PROGRAM, callees=CALLEES)
    return programs


def test_a_program_with_async_as_a_name_runs_with_all_it_imports(old):
    assert old.plain('program.py').err.endswith('SyntaxError: invalid syntax\n')
    ended = old.ours('program.py', 'arg')
    assert ended.status == 1
    assert ended.out == "True {'batch_send': True} {'async': 1, 'await': 2} ['program.py', 'arg']\n"


def test_its_traceback_is_that_of_the_same_program_with_another_name(old):
    """Lines, columns and the text of the file; of us, nothing."""
    shown = old.ours('program.py').err
    old.write(program=with_other_names(OLD_PROGRAM), callees=with_other_names(CALLEES))
    expected = old.plain('program.py')
    assert (expected.status, expected.out[:4]) == (1, 'True')
    assert without_marks(with_other_names(shown)) == without_marks(expected.err)


def without_marks(shown):
    """Return a traceback without the lines that mark columns.

    Python parses the line in question to mark operators and brackets in it as such. It marks less
    where it finds the name; that columns are right is tested at the import hook.
    """
    return re.sub(r'\n[ ~^]+(?=\n)', '', shown)


def with_other_names(text):
    """Return a text with the names, not the keywords, exchanged for others of the same length."""
    names = r'\b(asyn|awai)[ct]\b(?==)|\b(asyn)c\b(?! (?:def|with|for)\b)'
    return re.sub(names, lambda found: (found.group(1) or found.group(2)) + '_', text)


@pytest.mark.parametrize('how', ['-m', 'package', 'directory', 'zip file', 'stdin'])
def test_it_runs_in_every_way_that_programs_run(old, how):
    stdin = b''
    if how == '-m':
        args = ['-m', 'program']
    elif how == 'package':
        old.write({'pack/__init__.py': 'async = 1\n', 'pack/__main__.py': OLD_PROGRAM})
        args = ['-m', 'pack']
    elif how == 'stdin':
        args, stdin = ['-'], OLD_PROGRAM.replace('\n    ', '\n').encode()
    else:
        old.write({'d/__main__.py': OLD_PROGRAM, 'd/callees.py': CALLEES})
        args = ['d']
        if how == 'zip file':
            args = ['d.zip']
            with zipfile.ZipFile(str(old.directory / 'd.zip'), 'w') as file:
                for name in ('__main__.py', 'callees.py'):
                    file.write(str(old.directory / 'd' / name), name)
    ended = old.ours(*args, 'arg', stdin=stdin)
    assert ended.status == 1, ended.err
    assert ended.out.startswith("True {'batch_send': True} {'async': 1, 'await': 2} [")
    assert ended.out.endswith(", 'arg']\n")
    assert ended.err.endswith('ZeroDivisionError: division by zero\n')
    assert 'cli' not in ended.err


OLD_PROCESSES = """
    import multiprocessing, pickle, sys

    class Result(object):
        def __init__(self, async): self.async = async

    def work(queue, async):
        queue.put(Result(async=async))

    if __name__ == '__main__':
        context = multiprocessing.get_context(sys.argv[1])
        queue = context.Queue()
        process = context.Process(target=work, args=(queue,), kwargs=dict(async=6))
        process.start()
        print(queue.get(timeout=30).async, type(pickle.loads(pickle.dumps(Result(async=1)))))
        process.join()
        print(process.exitcode)
"""


@pytest.mark.parametrize('method', ['fork', 'spawn', 'forkserver'])
@pytest.mark.parametrize('how', [['program.py'], ['-m', 'program']])
def test_processes_of_it_read_it_too(programs, how, method):
    programs.write(program=OLD_PROCESSES)
    ended = programs.ours(*how, method)
    assert (ended.status, ended.err) == (0, '')
    assert ended.out == "6 <class '__main__.Result'>\n0\n"


def test_functions_of_it_have_their_source(programs):
    programs.write(
        program="""
            import inspect
            def f(async=1):
                return async
            print(inspect.getsource(f))
        """
    )
    assert programs.ours('program.py').out == ('def f(async=1):\n    return async\n\n')


def test_no_byte_code_of_it_is_left(old):
    old.ours('program.py')
    assert not (old.directory / '__pycache__').exists()
