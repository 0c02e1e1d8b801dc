"""What all parts of the test command need: interpreters, virtual environments, other programs.

Owns the environments (.venv, .venv-3.8, .venv-spark ...): which Python they have, that what is
wanted is installed, and that it is again when the lists change. Uses the standard library alone,
because it runs before anything is installed.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class SetUpError(Exception):
    """Something that only the user can put right; the text says what."""


def say(text):
    """Print a heading at once, so that it stands above the output of what it starts."""
    print('\n=== %s' % text, flush=True)


def call(command, **more):
    """Run a command with its output on ours and return its exit code."""
    print('$ %s' % ' '.join(command), flush=True)
    return subprocess.call(command, cwd=ROOT, stdin=subprocess.DEVNULL, **more)


def version_of(python):
    """Return the version of an interpreter as '3.11', or None when it cannot be started."""
    program = 'import sys; print("%d.%d" % sys.version_info[:2])'
    try:
        shown = subprocess.run(
            [python, '-c', program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return shown.stdout.decode().strip()


def find_interpreter(version):
    """Return an interpreter of `version` ('3.8'): this one, one on PATH, or pyenv's newest."""
    pyenv = os.environ.get('PYENV_ROOT') or os.path.expanduser('~/.pyenv')
    installed = glob.glob(os.path.join(pyenv, 'versions', version + '.*', 'bin', 'python'))
    installed.sort(key=lambda path: [int(number) for number in re.findall(r'\d+', path)])
    for python in [sys.executable, shutil.which('python' + version), *reversed(installed)]:
        if python and version_of(python) == version:
            return python
    return None


def environment(version, wanted, name='.venv'):
    """Return the python of the environment for `version`, made or completed as needed."""
    own = version == '%d.%d' % sys.version_info[:2]
    # The first Python that comes gets the plain name; one that comes later does not take it away.
    first = own and version_of(_python_of(name)) in (None, version)
    name = name if first else '%s-%s' % (name, version)
    folder, python = os.path.join(ROOT, name), _python_of(name)
    if version_of(python) != version:
        say('making %s with Python %s' % (name, version))
        base = sys.executable if own else find_interpreter(version)
        if subprocess.call([base, '-c', 'import ensurepip'], stderr=subprocess.DEVNULL):
            raise SetUpError(
                'Python %s cannot make virtual environments: its module ensurepip is missing.'
                ' Install it (Debian, Ubuntu: apt-get install python%s-venv)' % (version, version)
            )
        if call([base, '-m', 'venv', '--clear', folder]):
            raise SetUpError('could not make %s (see above)' % name)
    stamp = os.path.join(folder, 'installed-%s' % _fingerprint(wanted))
    if not os.path.exists(stamp):
        say('installing the package and its tools into %s' % name)
        pip = [python, '-m', 'pip', '--disable-pip-version-check', '--no-input', 'install']
        if call(pip + wanted):
            raise SetUpError('pip could not install what is needed (see above)')
        open(stamp, 'w').close()
    return python


def _python_of(name):
    inside = ['Scripts', 'python.exe'] if os.name == 'nt' else ['bin', 'python']
    return os.path.join(ROOT, name, *inside)


def _fingerprint(wanted):
    """Return a name for a set of requirements: it changes with any file that they are read from."""
    digest = hashlib.sha256(' '.join(wanted).encode())
    for path in ['setup.py', *(word for word in wanted if word.endswith('.txt'))]:
        with open(os.path.join(ROOT, path), 'rb') as file:
            digest.update(file.read())
    return digest.hexdigest()[:12]
