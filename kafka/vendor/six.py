"""Alias of six, which programs of 1.3 to 2.x import from here as well."""

from __future__ import annotations

import sys

import six
import six.moves
from six.moves import urllib
from six.moves.urllib import error, parse, request, response

# An import statement finds submodules by their whole names.
sys.modules.update(
    {
        __name__ + '.moves': six.moves,
        __name__ + '.moves.urllib': urllib,
        __name__ + '.moves.urllib.error': error,
        __name__ + '.moves.urllib.parse': parse,
        __name__ + '.moves.urllib.request': request,
        __name__ + '.moves.urllib.response': response,
    }
)
sys.modules[__name__] = six
