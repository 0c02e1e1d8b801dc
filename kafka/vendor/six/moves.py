"""The names of kafka.vendor.six.moves (1.3 to 2.x), each from its place in Python 3."""

from __future__ import annotations

import builtins as builtins
import pickle
import queue as queue
import shlex
from builtins import filter as filter
from builtins import input as input
from builtins import map as map
from builtins import range as range
from builtins import zip as zip
from collections import UserDict as UserDict
from collections import UserList as UserList
from collections import UserString as UserString
from functools import reduce as reduce
from io import StringIO as StringIO
from itertools import filterfalse as filterfalse
from itertools import zip_longest as zip_longest
from os import getcwd as getcwd
from os import getcwdb as getcwdb
from sys import intern as intern

from kafka.internals.lazy_imports import LateModule

cPickle = pickle
shlex_quote = shlex.quote
xrange = range
cStringIO = StringIO
urllib = LateModule('kafka.vendor.six.urllib')
configparser = LateModule('configparser')
http_client = LateModule('http.client')
socketserver = LateModule('socketserver')
