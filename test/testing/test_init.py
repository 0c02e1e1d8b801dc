"""The names of the package are there, and loaded when they are used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import kafka.testing
from test.sources import ROOT


@pytest.mark.parametrize('name', kafka.testing.__all__)
def test_every_name_is_there(name):
    assert getattr(kafka.testing, name) is not None


def test_other_names_are_not():
    with pytest.raises(AttributeError, match='nonsense'):
        kafka.testing.nonsense  # noqa: B018 - the look is what is tested


def test_nothing_is_loaded_before_it_is_used():
    program = (
        'import sys, kafka.testing\n'
        'assert "kafka.protocol" not in sys.modules\n'
        'from kafka.testing import Cluster\n'
        'assert "kafka.protocol" in sys.modules\n'
    )
    subprocess.run([sys.executable, '-c', program], cwd=ROOT, check=True, timeout=60)
