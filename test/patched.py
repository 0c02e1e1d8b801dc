"""Programs patched by gevent or eventlet: ``python -m test.patched gevent shared BOOTSTRAP TOPIC``.

Owns what such programs do; each is started as a process of its own by
test/behaviour/test_patched.py and by test/integration/test_patched.py, which judge what it prints:
one line of JSON. The patching comes before anything else is imported, as these packages demand.

Beside each program a greenlet ticks every 10 ms. A call that blocked the whole process would stop
it, so the ticks that it made while others waited are what shows that nothing does.
"""

from __future__ import annotations

import sys
import warnings

KINDS = ('gevent', 'eventlet')
TICK = 0.01


def patch(kind):
    """Patch the process; return spawn(function, *args), join(greenlet), sleep(seconds)."""
    warnings.simplefilter('ignore')  # eventlet warns of itself
    if kind == 'gevent':
        from gevent import monkey

        monkey.patch_all()
        import gevent

        green = gevent.spawn, lambda each: each.get(), gevent.sleep
    else:
        import eventlet

        eventlet.monkey_patch()
        green = eventlet.spawn, lambda each: each.wait(), eventlet.sleep
    warnings.simplefilter('error')
    return green


def say(line):
    """Print a line, at once."""
    sys.stdout.write(line + '\n')
    sys.stdout.flush()


class Ticker:
    """Counts how often another greenlet could run."""

    def __init__(self, spawn, sleep):
        self.count = 0
        self._sleep = sleep
        spawn(self._tick)

    def _tick(self):
        while True:
            self._sleep(TICK)
            self.count += 1


def timed(ticker, call):
    """Return what a call raises, how long it took, and how many ticks there were meanwhile."""
    import time

    began, before, error = time.monotonic(), ticker.count, None
    try:
        call()
    except Exception as raised:
        error = type(raised).__name__
    return {
        'error': error,
        'seconds': time.monotonic() - began,
        'ticks': ticker.count - before,
    }


# ---------------------------------------------------------------- KafkaProducer


def shared(green, ticker, bootstrap, topic):
    """Five greenlets share a producer: each waits for each record; a sixth waits for none."""
    from kafka import KafkaProducer

    spawn, join, _ = green
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:

        def one_by_one(name):
            return [
                producer.send(topic, b'%d-%d' % (name, number), partition=0).get(60).offset
                for number in range(40)
            ]

        def all_at_once():
            futures = [
                producer.send(topic, b'5-%d' % number, partition=0) for number in range(1000)
            ]
            producer.flush(60)
            return [future.get(0).offset for future in futures]

        def work():
            greenlets = [spawn(one_by_one, name) for name in range(5)] + [spawn(all_at_once)]
            offsets.extend(join(each) for each in greenlets)

        offsets = []
        found = timed(ticker, work)
    return {**found, 'offsets': offsets}


def limits(green, ticker, silent, stalled):
    """Each blocking call obeys its limit: `silent` accepts and says nothing, `stalled` hangs."""
    from kafka import KafkaProducer

    def bootstrap():
        KafkaProducer(bootstrap_servers=silent, bootstrap_timeout_ms=1000)

    found = {'constructor': timed(ticker, bootstrap)}
    producer = KafkaProducer(
        bootstrap_servers=silent, api_version=(2, 8), max_block_ms=1000, linger_ms=60000
    )
    found['send'] = timed(ticker, lambda: producer.send('t', b'v').get(60))
    found['close without work'] = timed(ticker, producer.close)
    producer = KafkaProducer(bootstrap_servers=stalled)
    future = producer.send('t', b'v')
    found['get'] = timed(ticker, lambda: future.get(1.0))
    found['flush'] = timed(ticker, lambda: producer.flush(1.0))
    found['close'] = timed(ticker, lambda: producer.close(1.0))
    return found


def interrupted(green, ticker, stalled, topic):
    """Ctrl-C while a greenlet and the main one wait for records that nobody acknowledges."""
    from kafka import KafkaProducer
    from kafka.errors import KafkaError

    spawn, _, _ = green
    producer = KafkaProducer(bootstrap_servers=stalled)
    future = producer.send(topic, b'v')

    def wait_too():
        try:
            producer.send(topic, b'w').get(60)
        except KafkaError:  # closed meanwhile
            pass

    spawn(wait_too)
    try:
        say('READY')
        future.get(60)
    except KeyboardInterrupt:
        found = {'interrupted': True}
    return {**found, 'close': timed(ticker, lambda: producer.close(1.0))}


def interrupted_within(green, ticker, bootstrap, topic):
    """Ctrl-C while a greenlet that is not the main one runs a coroutine in its turn."""
    import os
    import signal
    import threading

    from kafka import KafkaProducer

    spawn, join, _ = green
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    went, found = [], {}

    async def work():
        while producer._loop._driver != found['driver']:  # it gives way to who waits
            await producer._loop.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):  # Python calls handlers between any two steps
            pass
        went.append('on')

    def drive():
        found['driver'] = threading.get_ident()
        try:
            producer._loop.run(work(), 60)
        except KeyboardInterrupt:
            found['greenlet'] = list(went)

    greenlet = spawn(drive)
    join(greenlet)
    del found['driver']
    found['offset'] = producer.send(topic, b'v').get(60).offset
    found['handler'] = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    producer.close(60)
    return found


# ---------------------------------------------------------------- 0.9.5


def clients_09(green, ticker, bootstrap, topic):
    """Greenlets with a KafkaClient and a SimpleProducer each, and an asynchronous one of all."""
    from kafka import KafkaClient, SimpleProducer

    spawn, join, _ = green

    def one_by_one(name):
        client = KafkaClient(bootstrap)
        producer = SimpleProducer(client)
        for number in range(200):
            producer.send_messages(topic, b'%d-%d' % (name, number))
        producer.stop()
        client.close()

    def work():
        client = KafkaClient(bootstrap)
        producer = SimpleProducer(client, async_send=True)
        for number in range(100):
            producer.send_messages(topic, b'3-%d' % number)
        for each in [spawn(one_by_one, name) for name in range(3)]:
            join(each)
        producer.stop()
        client.close()

    return timed(ticker, work)


def limits_09(green, ticker, silent, stalled):
    """A client of 0.9.5 gives up after its ``timeout``."""
    from kafka import KafkaClient, SimpleProducer

    found = {'constructor': timed(ticker, lambda: KafkaClient(silent, timeout=1))}
    client = KafkaClient(stalled, timeout=1)
    producer = SimpleProducer(client)
    found['send_messages'] = timed(ticker, lambda: producer.send_messages('t', b'v'))
    return found


PROGRAMS = {
    each.__name__: each
    for each in (shared, limits, interrupted, interrupted_within, clients_09, limits_09)
}


def main():
    kind, name, *args = sys.argv[1:]
    green = patch(kind)
    spawn, _, sleep = green
    import json
    import logging

    logging.disable(logging.CRITICAL)  # what must fail here is judged by what it raises
    say(json.dumps(PROGRAMS[name](green, Ticker(spawn, sleep), *args)))


if __name__ == '__main__':
    main()
