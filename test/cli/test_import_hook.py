"""kafka.cli.import_hook: modules of an older Python are imported, all others as ever."""

from __future__ import annotations

import importlib
import importlib.util
import linecache
import os
import runpy
import sys
import traceback
import zipfile
import zipimport
from importlib.machinery import SourceFileLoader
from types import SimpleNamespace

import pytest

from kafka.cli import import_hook

OLD = 'def f(async=1): return async\nclass C:\n    async = 2\nfound = f(async=3)\n'


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """A directory on sys.path; what is imported from it is forgotten."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, 'dont_write_bytecode', False)
    monkeypatch.setattr(sys, 'pycache_prefix', None)
    before = set(sys.modules)
    import_hook.install()
    yield tmp_path
    import_hook.uninstall()
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], '__file__', None) or '':
            if str(tmp_path) in sys.modules[name].__file__:
                del sys.modules[name]
    linecache.clearcache()


def test_a_module_with_the_names_is_imported(modules):
    (modules / 'old_a.py').write_text(OLD)
    module = importlib.import_module('old_a')
    assert (module.found, getattr(module.C, 'async')) == (3, 2)
    assert module.__file__ == str(modules / 'old_a.py')
    assert isinstance(module.__loader__, SourceFileLoader)
    assert module.__loader__.get_source('old_a') == OLD


def test_modules_of_packages_and_what_they_import_are_imported(modules):
    package = modules / 'old_pack'
    package.mkdir()
    (package / '__init__.py').write_text('from .async import async\n')
    (package / 'async.py').write_text('from . import other\nasync = other.async\n')
    (package / 'other.py').write_text(OLD + 'async = found\n')
    assert getattr(importlib.import_module('old_pack'), 'async') == 3


def test_byte_code_of_a_changed_source_is_not_written(modules):
    """Another interpreter would take it for the source's own."""
    (modules / 'old_b.py').write_text(OLD)
    (modules / 'new_b.py').write_text('import old_b\n')
    importlib.import_module('new_b')
    (kept,) = os.listdir(str(modules / '__pycache__'))
    assert kept.startswith('new_b.')


def test_byte_code_that_is_there_is_used(modules):
    (modules / 'new_c.py').write_text('x = 1\n')
    importlib.import_module('new_c')
    spec = importlib.util.find_spec('new_c')
    spec.loader.source_to_code = None  # would fail
    assert spec.loader.get_code('new_c') is not None


def test_tracebacks_show_the_file_and_nothing_of_the_import(modules):
    (modules / 'old_d.py').write_text('def f(async): return 1 / async\n\nf(async=0)\n')
    with pytest.raises(ZeroDivisionError) as caught:
        import old_d  # noqa: F401  # there is one in sys.path
    frames = traceback.extract_tb(caught.value.__traceback__)[1:]
    assert [(f.filename, f.lineno, f.name) for f in frames] == [
        (str(modules / 'old_d.py'), 3, '<module>'),
        (str(modules / 'old_d.py'), 1, 'f'),
    ]
    assert frames[-1].line == 'def f(async): return 1 / async'


@pytest.mark.skipif(sys.version_info < (3, 11), reason='tracebacks have columns since Python 3.11')
def test_columns_are_those_of_the_file(modules):
    (modules / 'old_e.py').write_text('async = 0\nfound = async, (1 / async), async\n')
    with pytest.raises(ZeroDivisionError) as caught:
        import old_e  # noqa: F401  # there is one in sys.path
    frame = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert frame.line[frame.colno : frame.end_colno] == '1 / async'


@pytest.mark.parametrize('source', ['x = = 1\n', 'async = = 1\n'])
def test_a_syntax_error_shows_the_import_and_nothing_else(modules, source):
    (modules / 'wrong.py').write_text(source)
    with pytest.raises(SyntaxError) as caught:
        import wrong  # noqa: F401  # there is one in sys.path
    assert caught.value.filename == str(modules / 'wrong.py')
    assert len(traceback.extract_tb(caught.value.__traceback__)) == 1


def test_modules_in_zip_files_are_imported(modules, monkeypatch):
    with zipfile.ZipFile(str(modules / 'all.zip'), 'w') as file:
        file.writestr('old_z/__init__.py', 'from old_z.part import found, async\n')
        file.writestr('old_z/part.py', OLD + 'import new_z\nasync = new_z.x\n')
        file.writestr('new_z.py', 'x = 5\n')
        file.writestr('wrong_z.py', 'x = = 5\n')
    monkeypatch.syspath_prepend(str(modules / 'all.zip'))
    package = importlib.import_module('old_z')
    assert (package.found, getattr(package, 'async')) == (3, 5)
    assert package.__file__ == os.path.join(str(modules), 'all.zip', 'old_z', '__init__.py')
    with pytest.raises(SyntaxError):
        importlib.import_module('wrong_z')


def test_what_is_not_there_is_not_found(modules):
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module('nowhere_at_all')


def test_finders_of_the_interface_before_3_4_are_left_to_the_import_system(modules, monkeypatch):
    class Ancient:
        def find_module(self, name, path=None):
            raise AssertionError('not ours to call')

    ours = sys.meta_path[0]
    monkeypatch.setattr(import_hook.sys, 'meta_path', [ours, Ancient()])
    try:
        assert ours.find_spec('json') is None
    finally:
        monkeypatch.undo()


def test_a_finder_that_is_installed_no_longer_finds_nothing():
    finder = import_hook.OldSourceFinder()
    assert finder.find_spec('json') is None


def test_run_path_runs_them_too(modules):
    (modules / 'old_f.py').write_text(OLD)
    assert runpy.run_path(str(modules / 'old_f.py'))['found'] == 3


def test_installing_twice_is_installing_once(modules):
    before = list(sys.meta_path)
    import_hook.install()
    assert sys.meta_path == before
    import_hook.uninstall()
    assert sys.meta_path == before[1:]
    assert 'compile' not in {**vars(runpy), **vars(zipimport)}


def test_only_what_is_spawned_with_the_hook_gets_it(modules):
    spawn = SimpleNamespace(get_preparation_data=lambda name: {'name': name})
    import_hook._teach_spawn(spawn)
    import_hook._teach_spawn(spawn)
    data = spawn.get_preparation_data('x')
    assert sorted(data) == ['kafka', 'name']
    assert data['kafka'].__reduce__()[1][0].endswith('spawned.py')
    import_hook.uninstall()
    assert spawn.get_preparation_data('x') == {'name': 'x'}
    assert not hasattr(spawn.get_preparation_data.__wrapped__, '__wrapped__')


HOOKED = """
    %s
    from kafka.cli.import_hook import install
    install()
    import worker
    if __name__ == '__main__':
        worker.start()
"""
WORKER = """
    import multiprocessing
    def work(queue, async):
        queue.put(async)
    def start(method='spawn'):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        process = context.Process(target=work, args=(queue,), kwargs={'async': 6})
        process.start()
        print(queue.get(timeout=30))
        process.join()
"""


@pytest.mark.parametrize('before', ['', 'import multiprocessing.spawn'])
def test_a_program_installs_it_for_itself_and_what_it_spawns(programs, before):
    programs.write(program=HOOKED % before, worker=WORKER)
    ended = programs.plain('program.py')
    assert (ended.status, ended.out, ended.err) == (0, '6\n', '')
