"""Metrics of the async client for statsd: a reporter of one's own is told of each (2.0).

python client_statsd.py BROKERS TOPIC
"""
import sys

from kafka import KafkaClient
from kafka.metrics import AnonMeasurable, DictReporter, MetricConfig, Metrics
from kafka.metrics.metrics_reporter import AbstractMetricsReporter
from kafka.metrics.stats import Avg, Count, Max, Rate
from kafka.protocol.metadata import MetadataRequest


class StatsdReporter(AbstractMetricsReporter):

    def __init__(self):
        self.sink = {}
        self.closed = False

    def configure(self, configs):
        pass

    def init(self, metrics):
        for metric in metrics:
            self.metric_change(metric)

    def metric_change(self, metric):
        name = metric.metric_name
        self.sink['.'.join([name.group, name.name])] = metric

    def metric_removal(self, metric):
        name = metric.metric_name
        self.sink.pop('.'.join([name.group, name.name]), None)

    def close(self):
        self.closed = True


statsd, table = StatsdReporter(), DictReporter('app')
metrics = Metrics(MetricConfig(samples=3, tags={'client-id': 'shop'}), [statsd])
metrics.add_reporter(table)
sensor = metrics.sensor('latency')
for name, stat in (('avg', Avg()), ('max', Max()), ('rate', Rate(sampled_stat=Count()))):
    sensor.add(metrics.metric_name(name, 'orders', 'of orders'), stat)
metrics.add_metric(metrics.metric_name('queue', 'orders'), AnonMeasurable(lambda config, now: 42))
for value in (10, 20, 60):
    sensor.record(value)

client = KafkaClient(bootstrap_servers=sys.argv[1], client_id='shop', metrics=metrics,
                     metric_group_prefix='shop')
node = client.least_loaded_node()
client.await_ready(node)
for i in range(5):
    client.send_and_receive(node, MetadataRequest[0]([sys.argv[2]]))


def value(name):
    return statsd.sink[name].value()


print('%.0f %.0f %.0f' % (value('orders.avg'), value('orders.max'), value('orders.queue')))
print('connections: %d' % value('shop-metrics.connection-count'))
print('latency known: %s' % (0 < value('shop-metrics.request-latency-avg')
                             <= value('shop-metrics.request-latency-max')))
print('of the node: %s' % (value('shop-node-metrics.node-%s.request-rate' % node) > 0))
print('tags: %s' % statsd.sink['shop-metrics.request-rate'].metric_name.tags)
print('in the table: %s' % (table.snapshot()['app.orders.client-id=shop']['queue'] == 42))
client.close()
print('connections: %d' % value('shop-metrics.connection-count'))
metrics.close()
print('closed: %s' % statsd.closed)
