"""Settings of Sphinx. Build with ``python3 test/run.py --docs``; a warning is an error."""

from __future__ import annotations

import importlib
import os
import sys

DOCS = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(DOCS), DOCS]

__version__ = importlib.import_module('kafka.version').__version__

project = 'kafka-evergreen'
copyright = 'the kafka-evergreen authors, Apache License 2.0'
version = release = __version__

extensions = ['sphinx.ext.autodoc', 'docstrings']
autodoc_member_order = 'bysource'
autodoc_typehints = 'signature'
autodoc_default_options = {'members': True, 'show-inheritance': True}
add_module_names = False

# Two classes are called Message, that of 0.9.5 and that of the protocol; Sphinx cannot tell which
# one an annotation means.
suppress_warnings = ['ref.python']

html_theme = 'alabaster'
html_theme_options = {'page_width': '1100px', 'sidebar_width': '240px'}
html_show_sphinx = False
exclude_patterns = ['_build']
