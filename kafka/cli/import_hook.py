"""An import hook for modules whose source only an older Python compiles.

It finds and loads such modules; the change of the source is made by ``old_source``, which is
imported when it is first needed. Other modules are loaded by the standard loaders, which cache
their byte code as usual. Byte code of a changed source is never written, so that an interpreter
without the hook does not find it.
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

# These modules compile the content of zip files, and of files given to run_path() as in spawned
# processes, without a loader. The hook replaces the function compile in their namespaces.
_COMPILING = (runpy, zipimport)


def install() -> None:
    """Let this process and those it spawns import sources of an older Python from now on.

    Further calls have no effect. It covers ``runpy.run_path`` and modules in zip files. Modules
    that are already imported, and sources that compile, are not affected. Sources of neither this
    Python nor an older one raise SyntaxError; if the extra ``py2`` is missing the error names it.
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
    """Remove the hook; modules that it imported remain."""
    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, OldSourceFinder)]
    for module in _COMPILING:
        vars(module).pop('compile', None)


class OldSourceFinder:
    """Finds modules by the finders after this one, and gives them a loader for older sources."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        """Return the spec of a module, or None to let the import system continue."""
        finders = list(sys.meta_path)
        for finder in finders[finders.index(self) + 1 :] if self in finders else ():
            find = getattr(finder, 'find_spec', None)
            if find is None:
                return None  # a finder with the interface before Python 3.4: not supported here
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
    """Loads a module from its file as SourceFileLoader does, also one of an older Python."""

    _changed = False

    def source_to_code(  # type: ignore[override]
        self, data: Any, path: Any, *, _optimize: int = -1
    ) -> CodeType:
        """Return the code of a source.

        Raises: SyntaxError if neither this Python nor an older one compiles it.
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

    # The interpreter removes frames with these names from tracebacks, as those of the import
    # system, so that an error in a source is shown as without the hook.
    source_to_code.__code__ = source_to_code.__code__.replace(
        co_filename='<frozen importlib._bootstrap_external>', co_name='_call_with_frames_removed'
    )

    def set_data(self, path: str, data: Any, **options: Any) -> None:
        """Cache byte code as SourceFileLoader does, except that of a changed source."""
        if not self._changed:
            super().set_data(path, data, **options)


class SpawnLoader(OldSourceLoader):
    """Load ``multiprocessing.spawn``."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, then let it prepare the processes that it spawns."""
        super().exec_module(module)
        _teach_spawn(module)


def _rescue(
    data: Any, path: Any, error: SyntaxError, in_package: bool, optimize: int
) -> Union[CodeType, SyntaxError]:
    from kafka.cli.old_source import rescue

    return rescue(data, path, error, in_package, optimize)


def _compile(source: Any, filename: Any, mode: str, dont_inherit: bool = True) -> CodeType:
    """Compile a source for a module that reads it without a loader."""
    from kafka.cli.old_source import compile_source

    return compile_source(source, filename)


class _Install:
    """Installs the hook in a spawned process, which unpickles it before it runs the program."""

    def __reduce__(self) -> Any:
        # By path, not by name: sys.path of the new process is still that of a fresh interpreter.
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
