"""Write the file map of ``design.rst``: every module with the first line it says of itself.

    python3 docs/filemap.py

``test/test_architecture.py`` fails while the map and the tree differ.
"""

from __future__ import annotations

import ast
import os
import re

DOCS = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(DOCS)
DESIGN = os.path.join(DOCS, 'design.rst')
BETWEEN = re.compile(r'(?<=\.\. BEGIN file-map\n).*?(?=\.\. END file-map)', re.DOTALL)


def wanted():
    """Return the map of the tree as it is now."""
    lines = ['', '::', '']
    for directory, folders, files in os.walk(os.path.join(ROOT, 'kafka')):
        folders[:] = sorted(folder for folder in folders if folder != '__pycache__')
        for file in sorted(files):
            if file.endswith('.py'):
                path = os.path.join(directory, file)
                lines.append('    %-38s %s' % (os.path.relpath(path, ROOT), _first_line(path)))
    return '\n'.join([*lines, '', ''])


def current():
    """Return the map that ``design.rst`` has."""
    with open(DESIGN, encoding='utf-8') as file:
        return BETWEEN.search(file.read()).group()


def _first_line(path):
    with open(path, encoding='utf-8') as file:
        docstring = ast.get_docstring(ast.parse(file.read())) or ''
    return docstring.partition('\n')[0].replace('``', '')


def main():
    """Bring ``design.rst`` up to date."""
    with open(DESIGN, encoding='utf-8') as file:
        text = file.read()
    text = BETWEEN.sub(lambda _: wanted(), text)  # before the file is emptied: it may fail
    with open(DESIGN, 'w', encoding='utf-8') as file:
        file.write(text)


if __name__ == '__main__':
    main()
