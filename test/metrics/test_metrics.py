"""kafka.metrics: names, registry, sensors, quotas, reporters, expiry; the clock is replaced."""

from __future__ import annotations

import threading
import time

import pytest

from kafka.errors import QuotaViolationError
from kafka.metrics import (
    AnonMeasurable,
    DictReporter,
    KafkaMetric,
    MetricConfig,
    MetricName,
    Metrics,
    NamedMeasurable,
    Quota,
    clock,
)
from kafka.metrics.measurable import AbstractMeasurable
from kafka.metrics.metrics_reporter import AbstractMetricsReporter
from kafka.metrics.network_metrics import ClientMetrics, ConnectionMetrics
from kafka.metrics.stats import Avg, Count, Max, Percentile, Percentiles, Rate, Total


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


class Told(AbstractMetricsReporter):
    """A reporter that notes what it is told."""

    def __init__(self):
        self.told = []

    def init(self, metrics):
        self.told.append(('init', [metric.metric_name.name for metric in metrics]))

    def metric_change(self, metric):
        self.told.append(('change', metric.metric_name.name))

    def metric_removal(self, metric):
        self.told.append(('removal', metric.metric_name.name))

    def close(self):
        self.told.append('close')


@pytest.fixture
def now(monkeypatch):
    made = Clock()
    monkeypatch.setattr(time, 'time', made)
    return made


@pytest.fixture
def metrics(now):
    made = Metrics()
    yield made
    made.close()


# ---------------------------------------------------------------- names, bounds, configurations


@pytest.mark.parametrize(
    'arguments', [('', 'g'), ('n', ''), (None, 'g'), ('n', None), ('n', 'g', 'd', [('a', 1)])]
)
def test_a_name_has_a_name_a_group_and_tags_in_a_dict(arguments):
    with pytest.raises((ValueError, TypeError)):
        MetricName(*arguments)


def test_names_are_equal_whatever_their_descriptions_say():
    one, two = MetricName('n', 'g', 'd', {'a': 1}), MetricName('n', 'g', 'e', {'a': 1})
    assert one == two and hash(one) == hash(two) and not one != two
    for other in (MetricName('m', 'g', 'd', {'a': 1}), MetricName('n', 'g', 'd', {'a': 2}), 'n'):
        assert one != other


@pytest.mark.parametrize('attribute', ['name', 'group', 'description', 'tags'])
def test_a_name_cannot_be_changed(attribute):
    name = MetricName('n', 'g', 'd', {'a': 1})
    with pytest.raises(AttributeError):
        setattr(name, attribute, 'x')
    name.tags['a'] = 2
    assert name.tags == {'a': 1}


def test_a_configuration_keeps_at_least_one_window():
    config = MetricConfig()
    assert (config.samples, config.time_window_ms, config.quota, config.tags) == (
        2,
        30000,
        None,
        {},
    )
    with pytest.raises(ValueError):
        config.samples = 0
    with pytest.raises(ValueError):
        MetricConfig(samples=0)


@pytest.mark.parametrize(
    'quota, good, bad',
    [(Quota.upper_bound(5), [5, 4.9, -9], [5.1]), (Quota.lower_bound(5), [5, 6], [4.9])],
)
def test_a_bound_itself_is_acceptable(quota, good, bad):
    assert all(quota.is_acceptable(value) for value in good)
    assert not any(quota.is_acceptable(value) for value in bad)


def test_bounds_are_equal_by_both():
    assert Quota.upper_bound(5) == Quota.upper_bound(5)
    assert hash(Quota.upper_bound(5)) == hash(Quota.upper_bound(5))
    assert Quota.upper_bound(5) != Quota.lower_bound(5)
    assert Quota.upper_bound(5) != Quota.upper_bound(6)
    assert Quota.upper_bound(5).is_upper_bound() and Quota.upper_bound(5).bound == 5


# ---------------------------------------------------------------- the registry


def test_a_registry_counts_its_metrics(metrics):
    name = metrics.metric_name('count', 'kafka-metrics-count')
    assert metrics.metrics[name].value() == 1.0
    metrics.add_metric(metrics.metric_name('n', 'g'), AnonMeasurable(lambda config, now: 5))
    assert metrics.metrics[name].value() == 2.0


def test_tags_of_the_configuration_belong_to_each_name():
    metrics = Metrics(MetricConfig(tags={'a': 1, 'b': 2}))
    assert metrics.metric_name('n', 'g', 'd', {'b': 3}).tags == {'a': 1, 'b': 3}
    assert metrics.config.tags == {'a': 1, 'b': 2}
    assert metrics._config is metrics.config


def test_a_name_is_taken_once(metrics):
    name = metrics.metric_name('n', 'g')
    metrics.sensor('s').add(name, Avg())
    with pytest.raises(ValueError, match='already exists'):
        metrics.sensor('t').add(name, Avg())
    with pytest.raises(ValueError):
        metrics.add_metric(name, AnonMeasurable(lambda config, now: 5))
    assert metrics.sensor('t').metrics == ()


def test_metrics_are_removed_once(metrics):
    name = metrics.metric_name('n', 'g')
    metrics.add_metric(name, AnonMeasurable(lambda config, now: 5))
    assert isinstance(metrics.remove_metric(name), KafkaMetric)
    assert metrics.remove_metric(name) is None
    metrics.add_metric(name, AnonMeasurable(lambda config, now: 5))


def test_a_metric_gives_what_was_added(metrics, now):
    class Mine(AbstractMeasurable):
        def measure(self, config, now):
            return now

    mine, config = Mine(), MetricConfig()
    metric = KafkaMetric(metrics.metric_name('n', 'g'), mine, config)
    assert metric.measurable is mine
    assert metric.config is config
    assert (metric.value(), metric.value(7)) == (1000000.0, 7)
    assert AnonMeasurable(lambda config, now: 3).measure(config, 0) == 3.0
    assert NamedMeasurable('a', mine).stat is mine


# ---------------------------------------------------------------- sensors


def test_a_sensor_is_made_once(metrics):
    assert metrics.get_sensor('s') is None
    sensor = metrics.sensor('s')
    assert metrics.sensor('s') is metrics.get_sensor('s') is sensor
    assert sensor.name == 's'


def test_what_is_recorded_goes_to_each_statistic_and_to_the_parents(metrics, now):
    above, beside = metrics.sensor('above'), metrics.sensor('beside')
    for sensor in (above, beside):
        sensor.add(metrics.metric_name(sensor.name, 'g'), Total())
    child = metrics.sensor('child', parents=[above, beside])
    child.add(metrics.metric_name('avg', 'g'), Avg())
    child.add(metrics.metric_name('max', 'g'), Max())
    child.record(2)
    child.record(4)
    child.record()
    values = {name.name: metric.value() for name, metric in metrics.metrics.items()}
    assert values == {'avg': 7 / 3, 'max': 4, 'above': 7, 'beside': 7, 'count': 5}


@pytest.mark.parametrize('ways', [['a', 'a'], ['b', 'a']])
def test_a_sensor_reached_twice_is_refused(metrics, ways):
    a = metrics.sensor('a')
    metrics.sensor('b', parents=[a])
    with pytest.raises(ValueError):
        metrics.sensor('c', parents=[metrics.get_sensor(way) for way in ways])
    assert metrics.get_sensor('c') is None


def test_removing_a_sensor_removes_its_metrics_and_children(metrics):
    above = metrics.sensor('above')
    middle = metrics.sensor('middle', parents=[above])
    below = metrics.sensor('below', parents=[middle])
    for sensor in (above, middle, below):
        sensor.add(metrics.metric_name(sensor.name, 'g'), Count())
    metrics.remove_sensor('middle')
    assert [metrics.get_sensor(name) for name in ('above', 'middle', 'below')] == [
        above,
        None,
        None,
    ]
    assert {name.name for name in metrics.metrics} == {'count', 'above'}
    assert metrics._children_sensors == {above: []}
    metrics.remove_sensor('middle')


def test_a_quota_is_checked_and_the_value_counts(metrics, now):
    sensor = metrics.sensor('s')
    name = metrics.metric_name('t', 'g')
    sensor.add(name, Total(), MetricConfig(quota=Quota.upper_bound(5.0)))
    sensor.record(5)
    with pytest.raises(QuotaViolationError):
        sensor.record(1)
    assert metrics.metrics[name].value() == 6.0


def test_a_lower_bound_and_the_quota_of_a_sensor(metrics, now):
    sensor = metrics.sensor('s', MetricConfig(quota=Quota.lower_bound(0.0)))
    sensor.add(metrics.metric_name('t', 'g'), Total())
    sensor.record(1)
    with pytest.raises(QuotaViolationError):
        sensor.record(-2)


def test_a_compound_statistic_gives_several_metrics(metrics, now):
    names = [metrics.metric_name('p%d' % p, 'g') for p in (25, 75)]
    stat = Percentiles(400, 0, 100, 0, [Percentile(name, p) for name, p in zip(names, (25, 75))])
    sensor = metrics.sensor('s')
    sensor.add_compound(stat)
    for value in range(100):
        sensor.record(value)
    assert [round(metrics.metrics[name].value(), -1) for name in names] == [20, 70]
    assert [metric.metric_name for metric in sensor.metrics] == names
    with pytest.raises(ValueError):
        sensor.add_compound(None)


def test_windows_are_those_of_the_sensor(metrics, now):
    sensor = metrics.sensor('s', MetricConfig(samples=1, time_window_ms=1000))
    name = metrics.metric_name('n', 'g')
    sensor.add(name, Count())
    sensor.record()
    now.now += 0.999
    assert metrics.metrics[name].value() == 1
    now.now += 0.001
    assert metrics.metrics[name].value() == 0


def test_a_rate_goes_by_the_clock(metrics, now):
    sensor = metrics.sensor('s')
    name = metrics.metric_name('n', 'g')
    sensor.add(name, Rate())
    for _ in range(10):
        sensor.record()
    assert metrics.metrics[name].value() == pytest.approx(10 / 30)
    now.now += 2
    assert metrics.metrics[name].value() == pytest.approx(10 / 32)


# ---------------------------------------------------------------- expiry


def test_sensors_that_nobody_records_into_go(metrics, now):
    for name, seconds in (('s', 60), ('t', 120), ('u', 10**9)):
        sensor = metrics.sensor(name, None, seconds)
        sensor.add(metrics.metric_name(name, 'g'), Count())
    now.now += 60
    Metrics.ExpireSensorTask.run(metrics)
    assert metrics.get_sensor('s')  # at its limit, not beyond
    metrics.get_sensor('s').record()
    now.now += 60.001
    assert metrics.get_sensor('s').has_expired()
    Metrics.ExpireSensorTask.run(metrics)
    assert [bool(metrics.get_sensor(name)) for name in 'stu'] == [False, False, True]
    metrics.sensor('s').add(metrics.metric_name('s', 'g'), Count())


def test_the_thread_of_expiry_ends_with_the_registry():
    before = set(threading.enumerate())
    metrics = Metrics(enable_expiration=True)
    (thread,) = set(threading.enumerate()) - before
    assert thread.daemon
    metrics.close()
    thread.join(30)
    assert not thread.is_alive()


# ---------------------------------------------------------------- reporters


def test_all_reporters_are_closed_although_one_cannot_be(now):
    class Broken(Told):
        def close(self):
            super().close()
            raise ZeroDivisionError

    first, second = Broken(), Broken()
    metrics = Metrics(reporters=[first, second])
    with pytest.raises(ZeroDivisionError):
        metrics.close()
    assert (first.told[-1], second.told[-1]) == ('close', 'close')
    metrics.close()
    assert (first.told.count('close'), second.told.count('close')) == (1, 1)


def test_reporters_are_told_of_all_that_comes_and_goes(now):
    first, second = Told(), Told()
    metrics = Metrics(reporters=[first])
    name = metrics.metric_name('n', 'g')
    metrics.add_metric(name, AnonMeasurable(lambda config, now: 5))
    metrics.add_reporter(second)
    metrics.remove_metric(name)
    metrics.close()
    metrics.close()
    assert first.told == [
        ('init', []),
        ('change', 'count'),
        ('change', 'n'),
        ('removal', 'n'),
        'close',
    ]
    assert second.told == [('init', ['count', 'n']), ('removal', 'n'), 'close']


@pytest.mark.parametrize(
    'prefix, group, tags, category',
    [
        ('foo', 'grp1', {'b': 'bar', 'a': 42}, 'foo.grp1.a=42,b=bar'),
        ('', 'grp1', {}, 'grp1'),
        ('foo', 'grp1', {}, 'foo.grp1'),
        (None, 'grp1', {'a': 1}, 'grp1.a=1'),
    ],
)
def test_a_dict_reporter_has_categories(metrics, prefix, group, tags, category):
    reporter = DictReporter(prefix)
    metrics.add_reporter(reporter)
    name = metrics.metric_name('n', group, '', tags)
    metrics.add_metric(name, AnonMeasurable(lambda config, now: 5))
    assert reporter.snapshot()[category] == {'n': 5.0}
    metrics.remove_metric(name)
    assert category not in reporter.snapshot()


@pytest.mark.parametrize('method', ['init', 'metric_change', 'metric_removal', 'configure'])
def test_a_reporter_has_to_say_what_it_does(method):
    with pytest.raises(NotImplementedError):
        getattr(AbstractMetricsReporter(), method)(None)


# ---------------------------------------------------------------- the clock


def test_the_clock_that_was_replaced_counts(monkeypatch):
    monkeypatch.setattr(time, 'monotonic', lambda: 5.0)
    assert clock.milliseconds() == 5000.0
    monkeypatch.setattr(time, 'time', lambda: 7.0)
    assert clock.milliseconds() == 7000.0
    monkeypatch.undo()
    assert abs(clock.milliseconds() - time.time() * 1000) < 60000


def test_a_sensor_is_removed_while_somebody_adds_to_it(metrics):
    """Who adds holds the lock of the sensor and waits for that of the registry."""
    sensor = metrics.sensor('busy')
    removed = threading.Thread(target=metrics.remove_sensor, args=('busy',), daemon=True)
    with sensor.lock:
        removed.start()
        removed.join(20)
        assert not removed.is_alive()


class Shared(Metrics):
    """A registry where another thread works behind the first call of a method in this thread."""

    def __init__(self, method, work):
        super().__init__()
        self.raised = []
        call = getattr(self, method)

        def run():
            try:
                work(self)
            except Exception as error:
                self.raised.append(error)

        def call_and_let_another(*arguments):
            found = call(*arguments)
            if threading.current_thread() is not self.other and not self.other.ident:
                self.other.start()
                self.other.join(0.2)
            return found

        self.other = threading.Thread(target=run)
        setattr(self, method, call_and_let_another)


@pytest.mark.parametrize(
    'method, work',
    [
        ('get_sensor', lambda metrics: ConnectionMetrics(metrics, 'x', 1)),
        ('remove_metric', lambda metrics: ClientMetrics(metrics, 'x', int)),
    ],
    ids=['connections', 'clients'],
)
def test_two_threads_may_make_what_records_into_one_registry(method, work):
    metrics = Shared(method, work)
    work(metrics)
    metrics.other.join(10)
    assert metrics.other.ident and not metrics.raised
    metrics.close()


class Halves(AbstractMeasurable):
    """A statistic of two numbers that are equal; somebody asks before the second is changed."""

    first = second = 0

    def record(self, config, value, now):
        self.first += 1
        asks = threading.Thread(target=self.ask)
        self.asking.append(asks)
        asks.start()
        asks.join(0.1)
        self.second += 1

    def measure(self, config, now):
        return self.first - self.second


def test_no_figure_is_measured_in_the_middle_of_a_record():
    metrics, halves, told = Metrics(), Halves(), []
    sensor, name = metrics.sensor('s'), metrics.metric_name('n', 'g')
    sensor.add(name, halves)
    halves.asking, halves.ask = [], lambda: told.append(metrics.metrics[name].value())
    sensor.record()
    halves.asking[0].join(10)
    assert told == [0]
    metrics.close()
