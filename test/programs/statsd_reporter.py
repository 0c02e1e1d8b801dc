"""A metrics reporter as people plugged one in: names and values go to a statsd-like sink.

python statsd_reporter.py BROKERS TOPIC
"""
import sys

from kafka import KafkaProducer
from kafka.metrics import AnonMeasurable, DictReporter, MetricConfig, Metrics
from kafka.metrics.metrics_reporter import AbstractMetricsReporter
from kafka.metrics.stats import Avg, Count, Max, Rate

SINK = {}


class StatsdReporter(AbstractMetricsReporter):
    closed = 0

    def configure(self, configs):
        pass

    def init(self, metrics):
        for metric in metrics:
            self.metric_change(metric)

    def metric_change(self, metric):
        name = metric.metric_name
        SINK['.'.join(['kafka', name.group, name.name])] = metric

    def metric_removal(self, metric):
        name = metric.metric_name
        SINK.pop('.'.join(['kafka', name.group, name.name]), None)

    def close(self):
        StatsdReporter.closed += 1


def application_metrics():
    metrics = Metrics(MetricConfig(samples=3, tags={'app': 'shop'}), [DictReporter('mine')])
    sensor = metrics.sensor('latency')
    for name, stat in (('avg', Avg()), ('max', Max()), ('rate', Rate(sampled_stat=Count()))):
        sensor.add(metrics.metric_name(name, 'orders', 'of orders'), stat)
    metrics.add_metric(metrics.metric_name('queue', 'orders'), AnonMeasurable(lambda c, now: 42))
    for value in (10, 20, 60):
        sensor.record(value)
    return metrics


producer = KafkaProducer(bootstrap_servers=sys.argv[1], metric_reporters=[StatsdReporter],
                         metrics_num_samples=4, client_id='shop')
for i in range(50):
    producer.send(sys.argv[2], b'order %d' % i, partition=0)
producer.flush(30)

sent = SINK['kafka.producer-metrics.record-send-rate'].value()
print('send rate above 0: %s' % (sent > 0))
print('errors: %d' % SINK['kafka.producer-metrics.record-error-rate'].value())
print('tags: %s' % SINK['kafka.producer-metrics.batch-size-avg'].metric_name.tags)
told = producer.metrics()
print('latency known: %s' % (told['producer-metrics']['request-latency-avg'] > 0))
topics = [group for group in told if group.startswith('producer-topic-metrics')]
print('topics: %d, %s' % (len(topics), topics[0].endswith(sys.argv[2])))
producer.close()
print('closed reporters: %d' % StatsdReporter.closed)

mine = application_metrics()
values = dict((name.name, metric.value()) for name, metric in mine.metrics.items())
print('%(avg).0f %(max).0f %(queue).0f' % values)
mine.close()
