"""kafka.consumer: its names lead to their homes, and nothing is loaded before it is used."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import kafka.consumer
from test.sources import ROOT


@pytest.mark.parametrize('name', sorted(kafka.consumer._HOMES))
def test_a_name_is_the_object_of_its_home(name):
    home = importlib.import_module(kafka.consumer._HOMES[name])
    assert getattr(kafka.consumer, name) is getattr(home, name)


@pytest.mark.parametrize('name', kafka.consumer._SUBMODULES)
def test_a_submodule_is_an_attribute(name):
    assert getattr(kafka.consumer, name) is importlib.import_module('kafka.consumer.' + name)


def test_a_star_import_brings_the_three_consumers():
    assert kafka.consumer.__all__ == ['SimpleConsumer', 'MultiProcessConsumer', 'KafkaConsumer']
    assert set(kafka.consumer.__all__) == set(kafka.consumer._HOMES)
    assert set(kafka.consumer.__all__) <= set(dir(kafka.consumer))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match='Nonsense'):
        kafka.consumer.Nonsense  # noqa: B018 - the look-up is the test


def test_a_program_pays_for_the_consumer_it_uses():
    program = (
        'import sys; from kafka import KafkaConsumer; '
        'assert KafkaConsumer.__name__ == "KafkaConsumer"; '
        'assert not {"kafka.consumer.simple", "multiprocessing"} & set(sys.modules)'
    )
    subprocess.run([sys.executable, '-c', program], cwd=ROOT, check=True, timeout=30)
