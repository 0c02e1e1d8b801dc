"""A converter of docstrings, written to be read in the source, to reStructuredText.

It handles the one convention that reStructuredText lacks: ``Arguments:``, ``Returns:`` and similar
labels, with text after the colon, ``name: text`` items below them, or both.
"""

from __future__ import annotations

import re

LABEL = re.compile(r'^(Arguments|Attributes|Raises|Returns|Yields): ?(.*)$')
ITEM = re.compile(r'^([\w*][\w*, ]*): (.*)$')
# A word that ends in an underscore, outside of a literal, would be a reference.
REFERENCE = re.compile(r'(?<![`\w])(\w+)_(?=[\s,.;:)])')


def convert(lines):
    """Return a docstring's lines as lines of reStructuredText."""
    done, above = [], ''
    for block in _blocks(lines):
        if above.endswith('::') and block[0].startswith(' '):
            done += [*block, '']  # code, and what follows may be more of it
        else:
            done += [REFERENCE.sub(r'\1\\_', line) for line in [*_text(block), '']]
            above = block[-1]
    return done


def _text(block):
    """Return the lines of a paragraph that is not code."""
    label = LABEL.match(block[0])
    if label:
        return [':%s: %s' % label.groups(), *_items(block[1:], 4)]
    if len(block) > 1 and all(ITEM.match(line) or line[0] == ' ' for line in block):
        return _items(block, 0)
    return _prose(block)


def _blocks(lines):
    """Return the paragraphs; a label begins a new one, whatever precedes it."""
    blocks = [[]]
    for line in lines:
        if not line.strip() or LABEL.match(line):
            blocks.append([])
        if line.strip():
            blocks[-1].append(line)
    return [block for block in blocks if block]


def _items(block, indent):
    """Return ``name: text`` lines as a list; deeper lines continue the line above."""
    done = []
    for line in block:
        text = line.strip()
        item = ITEM.match(text)
        if item and len(line) - len(line.lstrip()) == indent:
            done += ['', '%s- ``%s``: %s' % (' ' * indent, *item.groups())]
        else:
            done.append(' ' * (indent + 2 if '' in done else indent or 4) + text)
    return done


def _prose(block):
    """Return text as it is, with a blank line where a definition ends."""
    done = block[:1]
    for line in block[1:]:
        if done[-1][0] == ' ' != line[0]:
            done.append('')
        done.append(line)
    return done


def process(app, what, name, obj, options, lines):
    """Convert in place; called by Sphinx for each docstring."""
    lines[:] = convert(lines)


def setup(app):
    """Register with Sphinx."""
    app.connect('autodoc-process-docstring', process)
    return {'parallel_read_safe': True}
