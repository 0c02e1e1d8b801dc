"""Execution of a program in the way in which the interpreter executes it.

It sets up ``__main__``, ``sys.argv`` and ``sys.path`` as ``python PROGRAM`` does, and reports an
error that ends the program. The exit itself (threads, atexit, exit status) is left to the
interpreter. Which sources can be run depends on ``import_hook`` and ``old_source``.
"""

from __future__ import annotations

import builtins
import io
import os
import pkgutil
import runpy
import sys
from importlib.machinery import BuiltinImporter, SourceFileLoader, SourcelessFileLoader
from types import CodeType, ModuleType, TracebackType
from typing import Any, Callable, List, Optional

from kafka.cli.import_hook import OldSourceLoader

_HERE = os.path.dirname(__file__) + os.sep


def run_module(name: str, args: List[str]) -> None:
    """Run a module by its name, as ``python -m`` does.

    Raises: what ends the interpreter as the program's end does: SystemExit or KeyboardInterrupt.
    """
    sys.argv[:] = ['-m', *args]
    _new_main()
    _guarded(runpy._run_module_as_main, name)  # type: ignore[attr-defined]


def run_path(path: str, args: List[str]) -> None:
    """Run a file, or the ``__main__`` of a directory or zip file; ``-`` is the standard input.

    Raises: what ends the interpreter as the program's end does: SystemExit or KeyboardInterrupt.
    """
    sys.argv[:] = [path, *args]
    if path == '-':
        _put_first('')
        _run_source(sys.stdin.buffer.read(), '<stdin>', BuiltinImporter)
    elif pkgutil.get_importer(path) is not None:
        sys.path[: 0 if _is_path_safe() else 1] = [_shown(path)]
        _new_main()
        _guarded(runpy._run_module_as_main, '__main__', False)  # type: ignore[attr-defined]
    else:
        _put_first(os.path.dirname(os.path.realpath(path)))
        _run_file(_shown(path))


def _run_file(path: str) -> None:
    if path.endswith('.pyc'):
        loader = SourcelessFileLoader('__main__', path)
        main = _new_main(__loader__=loader, __file__=path, __cached__=None)
        _guarded(exec, _guarded(loader.get_code, '__main__'), vars(main))
        _flush()
        return
    try:
        with io.open_code(path) as file:
            source = file.read()
    except OSError as error:
        sys.stderr.write(
            "%s: can't open file %r: [Errno %d] %s\n"
            % (sys.executable, path, error.errno or 0, error.strerror)
        )
        raise SystemExit(2) from None
    _run_source(source, path, SourceFileLoader('__main__', path))


def _run_source(source: bytes, path: str, loader: Any) -> None:
    main = _new_main(__loader__=loader, __file__=path, __cached__=None)
    _guarded(exec, _guarded(_code, source, path), vars(main))
    _flush()


def _code(source: bytes, path: str) -> CodeType:
    """Return the code of a program; a SyntaxError has no traceback, as in the interpreter."""
    try:
        return compile(source, path, 'exec', dont_inherit=True)
    except SyntaxError as error:
        failure = error
    from kafka.cli.old_source import rescue

    outcome = rescue(source, path, failure)
    if isinstance(outcome, SyntaxError):
        raise outcome
    return outcome


# ------------------------------------------------------------ steps of the interpreter


def _new_main(**names: Any) -> ModuleType:
    """Create a new module ``__main__``, with the names that programs find there."""
    main = ModuleType('__main__')
    if sys.version_info < (3, 14):
        vars(main)['__annotations__'] = {}
    vars(main).update({'__builtins__': builtins, **names})
    sys.modules['__main__'] = main
    return main


def _shown(path: str) -> str:
    """Return a program's path as in ``__file__`` and tracebacks: absolute since 3.9."""
    if sys.version_info < (3, 9) or os.path.isabs(path):
        return path
    return os.path.join(os.getcwd(), path)


def _is_path_safe() -> bool:
    """Return True if the interpreter keeps the program's directory out of sys.path."""
    return bool(sys.flags.isolated or getattr(sys.flags, 'safe_path', False))


def _put_first(directory: str) -> None:
    """Replace the first item of sys.path, which ``python -m`` set to the current directory."""
    if not _is_path_safe():
        sys.path[:1] = [directory]


def _flush() -> None:
    """Flush the output of the program before the output of its end."""
    for stream in (sys.stderr, sys.stdout):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass  # closed or missing, which the interpreter ignores too


def _guarded(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function; an error ends the program as it would without this package."""
    try:
        return function(*args)
    except SystemExit:
        raise
    except BaseException as error:
        failure = error
    failure.__traceback__ = _without_ours(failure.__traceback__)
    _report(failure)
    _flush()
    if type(failure) is KeyboardInterrupt:
        # The interpreter then ends by the signal itself and prints nothing more.
        sys.excepthook = lambda *args: None
        raise failure
    raise SystemExit(1)


def _without_ours(traceback: Optional[TracebackType]) -> Optional[TracebackType]:
    """Return a traceback without the frames of this package."""
    if traceback is None:
        return None
    rest = _without_ours(traceback.tb_next)
    code = traceback.tb_frame.f_code
    if code.co_filename.startswith(_HERE) or code is OldSourceLoader.source_to_code.__code__:
        return rest
    traceback.tb_next = rest
    return traceback


def _report(error: BaseException) -> None:
    """Show an error that ends the program, through sys.excepthook, as the interpreter does."""
    shown = (type(error), error, error.__traceback__)
    sys.last_type, sys.last_value, sys.last_traceback = shown
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    hook = getattr(sys, 'excepthook', None)
    if hook is None:
        sys.stderr.write('sys.excepthook is missing\n')
        hook = sys.__excepthook__
    try:
        hook(*shown)
    except SystemExit:
        raise
    except BaseException as second:
        second.__traceback__ = second.__traceback__ and second.__traceback__.tb_next
        second.__context__ = None
        _flush()
        sys.stderr.write('Error in sys.excepthook:\n')
        sys.__excepthook__(type(second), second, second.__traceback__)
        sys.stderr.write('\nOriginal exception was:\n')
        sys.__excepthook__(*shown)
