"""kafka: what it says of itself, and that every name leads to its home."""

from __future__ import annotations

import importlib

import pytest

import kafka

EVERY_NAME = sorted(kafka._HOMES)


@pytest.mark.parametrize('name', EVERY_NAME)
def test_a_name_is_the_object_of_its_home(name):
    home = importlib.import_module(kafka._HOMES[name])
    assert getattr(kafka, name) is getattr(home, name)


@pytest.mark.parametrize('name', kafka._SUBMODULES)
def test_a_submodule_is_an_attribute(name):
    assert getattr(kafka, name) is importlib.import_module('kafka.' + name)


def test_a_star_import_brings_names_that_have_a_home():
    assert set(kafka.__all__) <= set(kafka._HOMES)
    assert len(set(kafka.__all__)) == len(kafka.__all__)


def test_dir_lists_names_that_are_not_loaded_yet():
    assert set(kafka._HOMES) | set(kafka._SUBMODULES) | {'__version__'} <= set(dir(kafka))


def test_a_name_that_was_looked_up_is_kept(monkeypatch):
    monkeypatch.delitem(vars(kafka), 'TopicPartition', raising=False)
    first = kafka.TopicPartition
    assert vars(kafka)['TopicPartition'] is first


def test_the_package_says_what_it_is():
    assert kafka.__title__ == 'kafka'
    for name in ('__version__', '__author__', '__license__', '__copyright__'):
        assert isinstance(getattr(kafka, name), str)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match='Nonsense'):
        kafka.Nonsense  # noqa: B018 - the look-up is the test
