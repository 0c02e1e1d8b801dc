"""kafka.cli.program: a program that needs nothing of us runs as ``python PROGRAM`` runs it.

Each test runs a program both ways and compares the exit status and all that was written.
"""

from __future__ import annotations

import compileall
import os
import signal
import sys
import zipfile

import pytest

SURROUNDINGS = """
    '''The docstring.'''
    import sys
    print(list(globals()), __name__, __doc__, __file__, __package__, __spec__, __annotations__)
    print(type(__loader__), type(__builtins__), sys.argv, sys.path, sys.flags)
    print(sys.modules['__main__'].__dict__ is globals())
    print(sys.excepthook, sys.stdin, __import__('os').getcwd())
"""

ENDS = {
    'nothing': '',
    'no line end': 'print(1)',
    'error': 'def f():\n    return 1 / 0\n\nf()\n',
    'chained errors': """
        try:
            1 / 0
        except ZeroDivisionError:
            try:
                {}['a']
            except KeyError as e:
                raise ValueError('x') from e
    """,
    'error of an own class': 'class E(BaseException): pass\nraise E("x")\n',
    'exit': 'import sys\nprint("out")\nsys.exit()\n',
    'exit with zero': 'exit(0)\n',
    'exit with a number': 'import sys\nsys.exit(3)\n',
    'exit with a big number': 'import sys\nsys.exit(259)\n',
    'exit with a text': 'import sys\nsys.exit("said")\n',
    'exit with a list': 'raise SystemExit([1, 2])\n',
    'exit with an own class': 'class E(SystemExit): pass\nraise E(4)\n',
    'exit at once': 'import os\nos._exit(5)\n',
    'interrupt': 'raise KeyboardInterrupt\n',
    'interrupt of an own class': 'class I(KeyboardInterrupt): pass\nraise I\n',
    'interrupt by a signal': """
        import atexit, os, signal
        atexit.register(print, 'at exit')
        os.kill(os.getpid(), signal.SIGINT)
        while True: pass
    """,
    'terminated': 'import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\nwhile True: pass\n',
    'terminated and caught': """
        import os, signal, sys
        signal.signal(signal.SIGTERM, lambda *args: sys.exit(7))
        os.kill(os.getpid(), signal.SIGTERM)
        while True: pass
    """,
    'order at the end': """
        import atexit, sys, threading
        atexit.register(print, 'first registered')
        atexit.register(print, 'last registered')
        go = threading.Event()
        def late():
            go.wait()
            print('thread')
        threading.Thread(target=late).start()
        sys.stderr.write('err')
        print('end')
        go.set()
    """,
    'order after an error': """
        import atexit, sys
        atexit.register(lambda: (print('at exit'), sys.stderr.write(repr(sys.last_value))))
        print('before')
        raise ValueError('x')
    """,
    'error at exit': """
        import atexit
        class C:
            def __repr__(self): return 'C'
            def __call__(self): 1 / 0
        atexit.register(C())
    """,
    'error in a thread': """
        import threading
        thread = threading.Thread(target=lambda: 1 / 0)
        thread.start()
        thread.join()
    """,
    'own excepthook': """
        import sys, traceback
        def hook(*args):
            print('hook', len(traceback.format_exception(*args)), sys.exc_info())
        sys.excepthook = hook
        {}['a']
    """,
    'excepthook that fails': """
        import sys
        def hook(*args):
            raise ValueError('in hook')
        sys.excepthook = hook
        {}['a']
    """,
    'excepthook that exits': 'import sys\nsys.excepthook = lambda *a: sys.exit(9)\n{}["a"]\n',
    'no excepthook': 'import sys\ndel sys.excepthook\n{}["a"]\n',
    'stdout closed': 'import sys\nsys.stdout.close()\n1 / 0\n',
    'warnings': """
        import warnings
        warnings.warn('old', DeprecationWarning)
        warnings.warn('now')
    """,
    'cyclic end': """
        class C:
            def __del__(self): print('deleted')
        c = C()
        c.self = c
    """,
    'source of what it has': """
        import inspect
        class C:
            def m(self): return 1
        print(inspect.getsource(C), inspect.getsource(C.m), inspect.getsourcefile(C))
        print(inspect.getmodule(C))
    """,
    'pickles': """
        import pickle, sys
        class C: pass
        print(type(pickle.loads(pickle.dumps(C()))) is C, C.__module__)
    """,
    'log lines': """
        import logging
        logging.basicConfig(format='%(filename)s %(lineno)d %(funcName)s %(message)s')
        logging.warning('here')
    """,
    'coroutines': """
        import asyncio
        async def f():
            return [x async for x in g()], await h()
        async def g():
            yield 1
        async def h():
            return 2
        print(asyncio.run(f()))
    """,
}


@pytest.mark.parametrize('source', ENDS.values(), ids=list(ENDS))
def test_a_program_ends_as_it_does_by_itself(programs, source):
    programs.write(program=source)
    programs.check_same('program.py')


@pytest.mark.parametrize('path', ['program.py', './program.py', 'sub/../program.py', 'link.py'])
def test_a_program_finds_its_surroundings(programs, path):
    programs.write({'sub/x': ''}, program=SURROUNDINGS)
    os.symlink('program.py', str(programs.directory / 'link.py'))
    programs.check_same(path, 'one', '--two', '-m', '--no-text')


@pytest.mark.parametrize('flags', [['-O'], ['-B'], ['-u'], ['-W', 'error'], ['-X', 'dev']])
def test_flags_are_the_interpreters(programs, flags):
    programs.write(program='import sys\nprint(sys.flags, __debug__, sys.warnoptions)\nassert 0\n')
    programs.check_same('program.py', flags=flags)


@pytest.mark.skipif(sys.version_info < (3, 11), reason='-P came with Python 3.11')
@pytest.mark.parametrize('args', [['program.py'], ['-m', 'json.tool', '-h'], ['container']])
def test_safe_path_is_kept(programs, args):
    programs.write(
        {'container/__main__.py': 'import program\n'}, program='import sys\nprint(sys.path)\n'
    )
    programs.check_same(*args, flags=['-P'])


@pytest.mark.parametrize(
    'source',
    [
        b'print("\xc3\xa9", 1 / 0)\n',
        b'\xef\xbb\xbfprint("\xc3\xa9", 1 / 0)\n',
        b'# -*- coding: latin-1 -*-\nprint(ascii("\xe9"), 1 / 0)\n',
        b'print(1)\r\nprint(2)\r\n1 / 0\r\n',
        b'print(1)\r\n"""a\r\nb"""\nprint(2)\n\x0cprint(3)\n',
        b'if 1:\n    x = (1,\n\ny = 3\n',
        b'print(1)\n  print(2)\n',
        b'x = 1 +\n',
        b'def f():\n    return $\n',
        b'async def f():\n    yield from x\n',
        b'x = "abc\n',
        b'from __future__ import braces\n',
        b'x = "\\d"\n',
    ],
)
def test_sources_are_read_as_ever(programs, source):
    programs.write(program=source)
    programs.check_same('program.py')


IMPORTED = {
    'fails': 'def f():\n    1 / 0\nf()\n',
    'is no Python': 'x = 1\ny = = 2\n',
    'is not there': 'import nowhere\n',
    'lacks a name': 'from os import nothing\n',
    'exits': 'raise SystemExit(6)\n',
    'is well': 'import sys\nprint(__name__, __file__, __cached__, sorted(globals()))\n',
}


@pytest.mark.parametrize('source', IMPORTED.values(), ids=list(IMPORTED))
@pytest.mark.parametrize('statement', ['import other', 'from pack import other'])
def test_imports_show_what_they_show_by_themselves(programs, source, statement):
    programs.write(
        {'pack/__init__.py': '', 'pack/other.py': source}, program=statement + '\n', other=source
    )
    programs.check_same('program.py', flags=['-B'])


def test_byte_code_is_kept_as_ever(programs):
    programs.write(program='import other\n', other='x = 1\n')
    programs.ours('program.py')
    assert os.listdir(str(programs.directory / '__pycache__')) == [
        'other.%s.pyc' % sys.implementation.cache_tag
    ]


MODULES = [
    ['-m', 'single', 'arg'],
    ['-m', 'pack', 'arg'],
    ['-m', 'pack.part'],
    ['-m', 'pack.broken'],
    ['-m', 'pack.wrong'],
    ['-m', 'pack.gone'],
    ['-m', 'gone'],
    ['-m', 'ends'],
]


@pytest.mark.parametrize('args', MODULES, ids=' '.join)
def test_modules_run_as_with_python_m(programs, args):
    programs.write(
        {
            'pack/__init__.py': 'print(__name__)\n',
            'pack/__main__.py': 'from . import part\nprint(__spec__.name, __package__)\n1 / 0\n',
            'pack/part.py': 'import sys\nprint(__name__, sys.argv)\n',
            'pack/broken.py': 'x = 1\ny = = 2\n',
            'pack/wrong.py': 'from . import broken\n',
        },
        single=SURROUNDINGS,
        ends='raise KeyboardInterrupt\n',
    )
    plain, ours = programs.plain(*args), programs.ours(*args)
    # Objects in it are shown with their addresses.
    assert ours == plain or (ours.status, ours.err) == (plain.status, plain.err)
    assert len(ours.out.split()) == len(plain.out.split())


@pytest.mark.parametrize('kind', ['directory', 'zip file'])
@pytest.mark.parametrize('source', ['import sys, part\nprint(sys.argv, sys.path)\n1 / 0\n', 'x ='])
def test_directories_and_zip_files_run(programs, kind, source):
    programs.write({'container/__main__.py': source, 'container/part.py': 'print(__name__)\n'})
    if kind == 'zip file':
        container = programs.directory / 'container'
        with zipfile.ZipFile(str(programs.directory / 'container.zip'), 'w') as file:
            for name in ('__main__.py', 'part.py'):
                file.write(str(container / name), name)
    programs.check_same(
        'container' if kind == 'directory' else 'container.zip', 'arg', flags=['-B']
    )


def test_byte_code_runs(programs):
    programs.write(program='print(__name__, __file__)\n1 / 0\n')
    compileall.compile_file(str(programs.directory / 'program.py'), quiet=1, legacy=True)
    programs.check_same('program.pyc')


def test_standard_input_runs(programs):
    source = b'import sys\nprint(sys.argv, sys.path, sorted(globals()), __file__)\n1 / 0\n'
    programs.check_same('-', 'arg', stdin=source)


@pytest.mark.parametrize('path', ['gone.py', 'empty', 'sub/gone.py', 'here.py/gone.py'])
def test_what_is_no_program_is_told_as_ever(programs, path):
    programs.write(here='')
    (programs.directory / 'empty').mkdir()
    ended = programs.check_same(path)
    assert ended.status in (1, 2)
    assert ended.err


PROCESSES = """
    import multiprocessing, sys

    class Result:
        pass

    def work(queue):
        queue.put(Result())
        queue.put((__name__, sys.argv))

    if __name__ == '__main__':
        context = multiprocessing.get_context(sys.argv[1])
        queue = context.Queue()
        process = context.Process(target=work, args=(queue,))
        process.start()
        print(type(queue.get(timeout=30)) is Result, queue.get(timeout=30))
        process.join()
        print(process.exitcode)
"""


@pytest.mark.parametrize('method', ['fork', 'spawn', 'forkserver'])
@pytest.mark.parametrize('how', [['program.py'], ['-m', 'program']])
def test_processes_are_started(programs, how, method):
    programs.write(program=PROCESSES)
    ended = programs.check_same(*how, method)
    assert (ended.status, ended.err) == (0, '')


def test_interrupt_ends_by_the_signal(programs):
    programs.write(program=ENDS['interrupt by a signal'])
    assert programs.ours('program.py').status == -signal.SIGINT
