"""What programs count on is there, whatever form the package has: the lists of this folder."""

from __future__ import annotations

import base64
import importlib
import io
import pickle
from pathlib import Path
from unittest import mock

import pytest

from test.surviving.collect import LOGGERS, NAMES, PICKLES, loggers_today, pickled


def lines(path: Path):
    return [line.split(' ') for line in path.read_text(encoding='utf-8').splitlines()]


def test_every_name_of_the_list_is_there():
    missing = []
    for module, *names in lines(NAMES):
        loaded = importlib.import_module(module)
        missing += ['%s.%s' % (module, name) for name in names if not hasattr(loaded, name)]
    assert missing == []


def test_every_logger_of_the_list_is_used():
    assert {name for (name,) in lines(LOGGERS)} <= loggers_today()


class Renamed(pickle.Unpickler):
    """Unpickles as usual, but tells which classes the pickle names."""

    def __init__(self, data):
        super().__init__(io.BytesIO(data))
        self.named = []

    def find_class(self, module, name):
        self.named.append('%s.%s' % (module, name))
        return super().find_class(module, name)


def test_pickles_made_before_are_read_and_give_what_is_made_today():
    today = {what: data for what, data in pickled() if data}
    for what, text in lines(PICKLES):
        reader = Renamed(base64.b64decode(text))
        found, made = reader.load(), pickle.loads(today[what])
        assert type(found) is type(made), (what, reader.named)
        assert repr(found) == repr(made) or 'object at' in repr(found), what


# Names that tests and programs replace in a module, and what makes our code look them up there.
SEAMS = [
    (
        'kafka.client.KafkaConnection',
        lambda kafka: kafka.KafkaClient(['127.0.0.1:1'])._get_conn('127.0.0.1', 1),
    ),
    (
        'kafka.client.KafkaProtocol',
        lambda kafka: kafka.KafkaClient(['127.0.0.1:1']).send_metadata_request(['t']),
    ),
    (
        'kafka.consumer.kafka.KafkaClient',
        lambda kafka: kafka.KafkaConsumer('t', metadata_broker_list=['127.0.0.1:1'], group_id='g'),
    ),
    (
        'kafka.client_async.BrokerConnection',
        lambda kafka: kafka.client_async.KafkaClient(
            bootstrap_servers='127.0.0.1:1', api_version=(0, 9), bootstrap_topics_filter=set()
        ),
    ),
]


class Looked(Exception):
    """The replacement was used."""


@pytest.mark.parametrize(('seam', 'use'), SEAMS, ids=[name for name, _ in SEAMS])
def test_what_is_replaced_in_a_module_is_what_is_used(seam, use):
    import kafka
    import kafka.client_async

    replacement = mock.Mock(side_effect=Looked, name=seam, DEFAULT_CONFIG={})
    for method in ('encode_metadata_request', 'decode_metadata_response'):
        getattr(replacement, method).side_effect = Looked
    with mock.patch('kafka.client.KafkaClient.load_metadata_for_topics'):
        with mock.patch(seam, replacement):
            with pytest.raises(Looked):
                use(kafka)
