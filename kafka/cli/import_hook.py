"""The import hook: modules whose source only an older Python compiles are imported all the same.

Owns how modules are found and loaded with it. Any other module is loaded by the standard loaders'
own steps, and byte code of it is kept as ever. Byte code of a source that had to be changed is
never written, so that no interpreter without the hook comes upon it. What is changed in a source is
``old_source``'s, which is loaded when there is one.
"""

from __future__ import annotations

import functools
import os
import runpy
import sys
import zipimport
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, Dict, Optional, Union

_SPAWN = 'multiprocessing.spawn'

# These read what is in zip files, and what run_path is given, as spawned processes do with the
# program, without a loader of ours. With the hook their word compile means another function.
_COMPILING = (runpy, zipimport)


def install() -> None:
    """Import sources of an older Python too, from now on, in this process and those it spawns.

    Once is enough: further calls do nothing. ``runpy.run_path`` is included, and so are modules in
    zip files. What is imported already, and what compiles, stays as it is. SyntaxErrors remain for
    sources that are no older Python either; where the extra ``py2`` is missing they name it.
    """
    if _is_installed():
        return
    sys.meta_path.insert(0, OldSourceFinder())
    for module in _COMPILING:
        vars(module)['compile'] = _compile
    if _SPAWN in sys.modules:
        _teach_spawn(sys.modules[_SPAWN])


def _is_installed() -> bool:
    return any(isinstance(finder, OldSourceFinder) for finder in sys.meta_path)


def uninstall() -> None:
    """Take the hook away; what was imported by it stays."""
    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, OldSourceFinder)]
    for module in _COMPILING:
        vars(module).pop('compile', None)


class OldSourceFinder:
    """Find modules as the finders behind this one do, to be loaded from older sources too."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        """Return the spec of a module, or None for one that the import system has to look for."""
        finders = list(sys.meta_path)
        for finder in finders[finders.index(self) + 1 :] if self in finders else ():
            find = getattr(finder, 'find_spec', None)
            if find is None:
                return None  # a finder of the interface before Python 3.4: not ours to call
            spec: Optional[ModuleSpec] = find(name, path, target)
            if spec is not None:
                return _with_our_loader(spec)
        return None


def _with_our_loader(spec: ModuleSpec) -> ModuleSpec:
    loader = spec.loader
    if type(loader) is SourceFileLoader:
        if spec.name == _SPAWN:
            spec.loader = SpawnLoader(loader.name, loader.path)
        else:
            spec.loader = OldSourceLoader(loader.name, loader.path)
    return spec


class OldSourceLoader(SourceFileLoader):
    """Load a module from its file as SourceFileLoader does, one of an older Python too."""

    _changed = False

    def source_to_code(  # type: ignore[override]
        self, data: Any, path: Any, *, _optimize: int = -1
    ) -> CodeType:
        """Return the code of a source.

        Raises: SyntaxError for what neither this Python nor an older one compiles.
        """
        try:
            return super().source_to_code(data, path, _optimize=_optimize)
        except SyntaxError as error:
            in_package = '.' in self.name or self.is_package(self.name)
            outcome = _rescue(data, path, error, in_package, _optimize)
            if outcome is error:
                raise
        if isinstance(outcome, SyntaxError):
            raise outcome
        self._changed = True
        return outcome

    # Under these names the interpreter leaves a frame out of tracebacks together with those of the
    # import system, so that an error in a source is shown as it is without the hook.
    source_to_code.__code__ = source_to_code.__code__.replace(
        co_filename='<frozen importlib._bootstrap_external>', co_name='_call_with_frames_removed'
    )

    def set_data(self, path: str, data: Any, **options: Any) -> None:
        """Keep byte code as SourceFileLoader does, but none of a source that was changed."""
        if not self._changed:
            super().set_data(path, data, **options)


class SpawnLoader(OldSourceLoader):
    """Load ``multiprocessing.spawn``."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, then make it prepare the processes that it starts."""
        super().exec_module(module)
        _teach_spawn(module)


def _rescue(
    data: Any, path: Any, error: SyntaxError, in_package: bool, optimize: int
) -> Union[CodeType, SyntaxError]:
    from kafka.cli.old_source import rescue

    return rescue(data, path, error, in_package, optimize)


def _compile(source: Any, filename: Any, mode: str, dont_inherit: bool = True) -> CodeType:
    """Compile what a module that has no loader for it reads."""
    from kafka.cli.old_source import compile_source

    return compile_source(source, filename)


class _Install:
    """What a spawned process unpickles before it reads the program: it installs the hook."""

    def __reduce__(self) -> Any:
        # By path, not by name: that process has no other sys.path than a fresh interpreter yet.
        return runpy.run_path, (os.path.join(os.path.dirname(__file__), 'spawned.py'),)


def _teach_spawn(spawn: Any) -> None:
    """Let multiprocessing install the hook in the processes that it spawns."""
    prepare = spawn.get_preparation_data
    if hasattr(prepare, 'carries_hook'):
        return

    @functools.wraps(prepare)
    def get_preparation_data(name: str) -> Dict[str, Any]:
        hook = {'kafka': _Install()} if _is_installed() else {}
        return {**hook, **prepare(name)}

    get_preparation_data.carries_hook = True  # type: ignore[attr-defined]
    spawn.get_preparation_data = get_preparation_data
