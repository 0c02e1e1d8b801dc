"""Programs as people write them: each is run as it is, in a process of its own, by each client."""

from __future__ import annotations

from typing import Any

from asking import Asking, promise

FLASK = """
import atexit, json, sys, threading
from kafka import KafkaProducer

producer = KafkaProducer(
    bootstrap_servers=[sys.argv[1]], value_serializer=lambda v: json.dumps(v).encode(),
    retries=3, acks='all', linger_ms=50,
)
atexit.register(producer.flush)

def view(n):
    producer.send(sys.argv[2], {'n': n}, partition=0)

for n in range(20):
    view(n)
"""


@promise('usage')
def a_web_application_that_flushes_at_exit(at: Asking) -> Any:
    return at.program(FLASK)


CELERY = """
import multiprocessing, os, sys
from kafka import KafkaProducer

_producer = None

def producer():
    global _producer
    if _producer is None:
        _producer = KafkaProducer(bootstrap_servers=sys.argv[1])
    return _producer

def task(n):
    found = producer().send(sys.argv[2], b'v', partition=0).get(timeout=30)
    return found.partition

if __name__ == '__main__':
    context = multiprocessing.get_context('fork')
    with context.Pool(2) as pool:
        print(sum(pool.map(task, range(10))))
"""


@promise('L 13')
def workers_that_make_producers_after_the_fork(at: Asking) -> Any:
    return at.program(CELERY)


FORKED = """
import os, sys, time
from kafka import KafkaProducer

producer = KafkaProducer(bootstrap_servers=sys.argv[1], max_block_ms=3000)
producer.send(sys.argv[2], b'parent', partition=0).get(timeout=30)
child = os.fork()
if not child:
    own = KafkaProducer(bootstrap_servers=sys.argv[1])
    own.send(sys.argv[2], b'child', partition=1).get(timeout=30)
    own.close()
    os._exit(0)
print(os.waitpid(child, 0)[1])
producer.send(sys.argv[2], b'parent again', partition=0).get(timeout=30)
"""


@promise('L 13')
def a_child_with_a_producer_of_its_own(at: Asking) -> Any:
    return at.program(FORKED)


LOGGING = """
import logging, sys
from kafka import KafkaProducer

class KafkaHandler(logging.Handler):
    def __init__(self, servers, topic):
        super().__init__()
        self.producer = KafkaProducer(bootstrap_servers=servers, linger_ms=5)
        self.topic = topic

    def emit(self, record):
        if record.name.startswith('kafka'):
            return
        try:
            self.producer.send(self.topic, self.format(record).encode('utf-8'), partition=0)
        except Exception:
            self.handleError(record)

    def close(self):
        self.producer.flush(timeout=10)
        self.producer.close(timeout=10)
        super().close()

log = logging.getLogger()
log.setLevel(logging.DEBUG)
log.addHandler(KafkaHandler(sys.argv[1], sys.argv[2]))
for n in range(10):
    log.info('event %d', n)
logging.shutdown()
"""


@promise('usage')
def a_handler_of_logging(at: Asking) -> Any:
    return at.program(LOGGING)


LOGGING_LATE = """
import logging, sys
from kafka import KafkaProducer

class KafkaHandler(logging.Handler):
    def __init__(self):
        super().__init__()
        self.producer = KafkaProducer(bootstrap_servers=sys.argv[1])

    def emit(self, record):
        if record.name.startswith('kafka'):
            return
        try:
            self.producer.send(sys.argv[2], record.getMessage().encode(), partition=0)
        except Exception:
            pass

    def flush(self):
        self.producer.flush(timeout=10)

class Late:
    def __del__(self):
        logging.getLogger('app').warning('at the very end')

log = logging.getLogger('app')
log.addHandler(KafkaHandler())
late = Late()
log.warning('first')
"""


@promise('usage')
def a_handler_of_logging_that_is_used_during_shutdown(at: Asking) -> Any:
    return at.program(LOGGING_LATE)


RETRIES = """
import sys, time
from kafka import KafkaProducer
from kafka.errors import KafkaError, KafkaTimeoutError

def send(producer, topic, value, attempts=3):
    for attempt in range(attempts):
        try:
            return producer.send(topic, value, partition=0).get(timeout=10)
        except KafkaTimeoutError:
            print('timeout')
        except KafkaError as error:
            print('error')
    return None

good = KafkaProducer(bootstrap_servers=sys.argv[1])
bad = KafkaProducer(bootstrap_servers='127.0.0.1:1', api_version=(0, 10), max_block_ms=200)
print(send(good, sys.argv[2], b'v').offset)
print(send(bad, sys.argv[2], b'v'))
try:
    bad.send(sys.argv[2], b'v')
except KafkaError as error:
    print(isinstance(error, KafkaTimeoutError), bool(str(error)))
"""


@promise('usage')
def retries_around_time_outs(at: Asking) -> Any:
    return at.program(RETRIES)


WEB = """
import sys
from concurrent.futures import ThreadPoolExecutor
from kafka import KafkaProducer

producer = KafkaProducer(bootstrap_servers=sys.argv[1], acks=1)

def request(n):
    found = producer.send(sys.argv[2], value=b'v', key=b'k').get(timeout=30)
    return found.offset

with ThreadPoolExecutor(32) as pool:
    offsets = list(pool.map(request, range(320)))
print(sorted(offsets) == list(range(320)))
producer.close()
"""


@promise('usage')
def a_web_server_with_32_threads(at: Asking) -> Any:
    return at.program(WEB)


PROMETHEUS = """
import re, sys
from kafka import KafkaProducer

producer = KafkaProducer(bootstrap_servers=sys.argv[1])
for n in range(10):
    producer.send(sys.argv[2], b'v', partition=0).get(timeout=30)

def lines(metrics):
    for group, values in sorted(metrics.items()):
        if group.startswith('kafka-metrics-count'):
            continue
        for name, value in sorted(values.items()):
            text = 'kafka_%s_%s' % (group, name)
            yield '%s %f' % (re.sub('[^a-zA-Z0-9_]', '_', text), float(value))

text = list(lines(producer.metrics()))
wanted = ('record_send_rate', 'request_latency_avg', 'byte_rate', 'batch_size_avg')
for each in wanted:
    found = [line for line in text if line.startswith('kafka_producer_metrics_' + each)]
    print(each, len(found), float(found[0].split()[1]) > 0)
raw = producer.metrics(raw=True)
print(all(hasattr(each, 'tags') and hasattr(each, 'group') for each in raw))
print(type(list(raw.values())[0].value()).__name__ in ('int', 'float'))
"""


@promise('L 5')
def metrics_for_prometheus(at: Asking) -> Any:
    return at.program(PROMETHEUS)


YAML = """
import json, sys
from kafka import KafkaProducer

config = json.loads('''{
    "bootstrap_servers": "%s", "acks": "all", "retries": 3, "linger_ms": 5,
    "batch_size": 32768, "compression_type": "gzip", "client_id": "from-yaml",
    "max_in_flight_requests_per_connection": 1, "request_timeout_ms": 20000,
    "security_protocol": "PLAINTEXT", "sasl_mechanism": null, "ssl_cafile": null
}''' % sys.argv[1])
producer = KafkaProducer(**config)
print(producer.send(sys.argv[2], b'v', partition=0).get(timeout=30).offset)
producer.close()
"""


@promise('usage')
def options_from_a_file(at: Asking) -> Any:
    return at.program(YAML)


TEXTS = """
import sys
from kafka import KafkaProducer

for name, value in (
    ('linger_ms', '5'), ('retries', '3'), ('batch_size', '16384'), ('request_timeout_ms', '20000'),
    ('max_block_ms', '20000'), ('acks', '1'), ('acks', 'all'), ('acks', '-1'),
    ('buffer_memory', '33554432'), ('max_request_size', '1000000'),
    ('retry_backoff_ms', '100'), ('metadata_max_age_ms', '100000'),
    ('max_in_flight_requests_per_connection', '1'),
):
    try:
        producer = KafkaProducer(bootstrap_servers=sys.argv[1], **{name: value})
        producer.send(sys.argv[2], b'v', partition=0).get(timeout=10)
        print(name, value, 'works')
        producer.close()
    except Exception as error:
        print(name, value, type(error).__name__)
"""


@promise('usage')
def options_that_are_texts_of_numbers(at: Asking) -> Any:
    return at.program(TEXTS)


OLD_VERSION = """
import sys
from kafka import KafkaProducer

for version in ((0, 10), (0, 10, 1), (0, 9), (0, 11), (1, 0), (2, 0)):
    producer = KafkaProducer(bootstrap_servers=sys.argv[1], api_version=version)
    print(producer.send(sys.argv[2], b'v', key=b'k', partition=0).get(timeout=30).offset)
    producer.close()
"""


@promise('L 4', release='0.11')
def api_version_0_10(at: Asking) -> Any:
    return at.program(OLD_VERSION)


CALLBACKS = """
import sys
from kafka import KafkaProducer

producer = KafkaProducer(bootstrap_servers=sys.argv[1])
results = []

def on_send_success(record_metadata):
    results.append((record_metadata.topic == sys.argv[2], record_metadata.offset))
    raise RuntimeError('a bug of the program')

def on_send_error(excp):
    results.append(excp)

for n in range(3):
    future = producer.send(sys.argv[2], b'raw_bytes', partition=0)
    future.add_callback(on_send_success).add_errback(on_send_error)
producer.flush()
print(len(results), sorted(str(each) for each in results))
"""


@promise('usage')
def callbacks_with_bugs(at: Asking) -> Any:
    return at.program(CALLBACKS)


BLOCKED = """
import sys
from kafka import KafkaProducer
producer = KafkaProducer(bootstrap_servers=sys.argv[1])
for n in range(1000):
    producer.send(sys.argv[2], b'msg %d' % n, partition=0)
producer.flush()
producer.send(sys.argv[2], b'another_message', partition=0).get(timeout=60)
producer.send(sys.argv[2], key=b'foo', value=b'bar', partition=0)
producer = KafkaProducer(bootstrap_servers=sys.argv[1], key_serializer=str.encode)
producer.send(sys.argv[2], key='ping', value=b'1234', partition=1)
producer.flush()
producer = KafkaProducer(bootstrap_servers=sys.argv[1], compression_type='gzip')
for i in range(1000):
    producer.send(sys.argv[2], b'msg %d' % i, partition=2)
producer.flush()
"""


@promise('M 23')
def the_examples_of_the_readme(at: Asking) -> Any:
    return at.program(BLOCKED)


DEAD_HOST = """
import sys
from kafka import KafkaProducer
from kafka.errors import KafkaError

producer = KafkaProducer(bootstrap_servers=['127.0.0.1:9', 'localhost:1', sys.argv[1]])
future = producer.send(sys.argv[2], b'raw_bytes', partition=0)
try:
    record_metadata = future.get(timeout=10)
except KafkaError as error:
    print(repr(error))
else:
    print(record_metadata.partition, record_metadata.offset)
"""


@promise('usage')
def a_dead_host_first(at: Asking) -> Any:
    return at.program(DEAD_HOST)


SUBCLASS = """
import json, sys
from kafka import KafkaProducer

class Events(KafkaProducer):
    def __init__(self, topic, **options):
        super().__init__(value_serializer=self.encode, **options)
        self.topic = topic
        self.count = 0

    @staticmethod
    def encode(event):
        return json.dumps(event, sort_keys=True).encode('utf-8')

    def send(self, value, **more):
        self.count += 1
        return super().send(self.topic, value=value, **more)

with_events = Events(sys.argv[2], bootstrap_servers=sys.argv[1])
futures = [with_events.send({'n': n, 'ok': True}, partition=0) for n in range(10)]
with_events.flush(timeout=30)
print(with_events.count, [each.get(timeout=1).offset for each in futures])
with_events.close(timeout=10)
"""


@promise('usage')
def a_class_of_ones_own_above_it(at: Asking) -> Any:
    return at.program(SUBCLASS)


SIGTERM = """
import os, signal, sys, threading
from kafka import KafkaProducer

producer = KafkaProducer(bootstrap_servers=sys.argv[1], linger_ms=20000)

def stop(number, frame):
    producer.flush(timeout=20)
    producer.close(timeout=20)
    print('closed')
    sys.exit(0)

signal.signal(signal.SIGTERM, stop)
producer.send(sys.argv[2], b'v', partition=0)
os.kill(os.getpid(), signal.SIGTERM)
print('never')
"""


@promise('usage')
def flushing_in_a_handler_of_signals(at: Asking) -> Any:
    return at.program(SIGTERM)


MOCKED = """
import sys
from unittest import mock
import kafka
from kafka import KafkaProducer

with mock.patch('kafka.KafkaProducer') as fake:
    import kafka as again
    again.KafkaProducer(bootstrap_servers='nowhere').send('t', b'v')
    print(fake.return_value.send.call_args == mock.call('t', b'v'))
producer = mock.create_autospec(KafkaProducer)
producer.send('t', value=b'v', key=b'k', partition=0, timestamp_ms=1, headers=[])
with mock.patch.object(KafkaProducer, 'send') as send, mock.patch.object(
    KafkaProducer, '__init__', return_value=None
):
    KafkaProducer(bootstrap_servers='nowhere').send('t', b'v')
    print(send.call_count)
"""


@promise('usage')
def mocks_of_a_producer(at: Asking) -> Any:
    return at.program(MOCKED)
