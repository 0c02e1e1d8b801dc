"""docs/options.rst is what the option table says."""

from __future__ import annotations

import os
import sys

import pytest

from kafka.config.resolution import OPTIONS
from test.sources import ROOT

sys.path.insert(0, os.path.join(ROOT, 'docs'))
try:
    import options as page
finally:
    sys.path.pop(0)


def test_the_page_is_current():
    assert page.current() == page.wanted(), 'run python3 docs/options.py'


@pytest.mark.parametrize('name', sorted(OPTIONS))
def test_the_page_has_every_option(name):
    assert '``%s``' % name in page.current()


def test_what_delivery_timeout_ms_means_for_the_times_in_it_is_told():
    told = ' '.join(OPTIONS['delivery_timeout_ms'].doc.split())
    for word in ('linger_ms', 'request_timeout_ms', 'sum', 'refused'):
        assert word in told
