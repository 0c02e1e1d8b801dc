"""Settings of brokers, loggers, groups and client metrics; refused versions of every API."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from kafka.protocol.api import request_class
from test.differential.script import REFUSED_ABOVE, SETTLES, Scenario, Step, one
from test.differential.steps_admin import (
    ALTER_CONFIGS,
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DESCRIBE_CONFIGS,
    GROUP,
    INCREMENTAL_ALTER_CONFIGS,
    LIST_CONFIG_RESOURCES,
    change_config,
    describe_configs,
    set_config,
)

SET, DELETE, APPEND, SUBTRACT = range(4)
#: A dynamic setting of brokers that nothing in the script depends on.
DYNAMIC = 'log.segment.delete.delay.ms'


def _told(name: str, kind: int, resource: str, *keys: str) -> Step:
    return Step(
        name,
        DESCRIBE_CONFIGS,
        lambda c: describe_configs(kind, resource or c.name(), *keys, include_synonyms=True),
        settles=SETTLES,
    )


def _s(name: str, kind: int, resource: str, key: str, value: Optional[str], **more: Any) -> Step:
    return Step(
        name, ALTER_CONFIGS, lambda c: set_config(kind, resource or c.name(), key, value, **more)
    )


def _i(
    name: str,
    kind: int,
    resource: str,
    key: str,
    operation: int,
    value: Optional[str] = None,
    **more: Any,
) -> Step:
    return Step(
        name,
        INCREMENTAL_ALTER_CONFIGS,
        lambda c: change_config(kind, resource or c.name(), key, operation, value, **more),
    )


BROKER_STEPS: List[Step] = [
    _s('set for broker 0', BROKER, '0', DYNAMIC, '50000'),
    _told('told of broker 0', BROKER, '0', DYNAMIC, 'num.partitions'),
    _s('validate for broker 0', BROKER, '0', DYNAMIC, '40000', validate_only=True),
    _s('set wrong for broker 0', BROKER, '0', DYNAMIC, 'soon'),
    _s('set negative for broker 0', BROKER, '0', DYNAMIC, '-5'),
    _s('set fixed for broker 0', BROKER, '0', 'num.partitions', '7'),
    _s('set for broker x', BROKER, 'x', DYNAMIC, '50000'),
    _i('set for broker 0 incrementally', BROKER, '0', DYNAMIC, SET, '30000'),
    _i('set fixed incrementally', BROKER, '0', 'num.partitions', SET, '7'),
    _i('append to a number', BROKER, '0', DYNAMIC, APPEND, '1'),
    _told('told of broker 0 then', BROKER, '0', DYNAMIC),
    _i('delete for broker 0', BROKER, '0', DYNAMIC, DELETE),
    Step(
        'take back for broker 0',
        ALTER_CONFIGS,
        lambda c: {'resources': [{'resource_type': BROKER, 'resource_name': '0', 'configs': []}]},
    ),
    _told('told of broker 0 at last', BROKER, '0', DYNAMIC),
    _i('loggers', BROKER_LOGGER, '0', 'kafka.server.KafkaApis', SET, 'DEBUG'),
    _i('level of loggers', BROKER_LOGGER, '0', 'kafka.server.KafkaApis', SET, 'LOUD'),
    _i('loggers of broker 7', BROKER_LOGGER, '7', 'kafka.server.KafkaApis', SET, 'DEBUG'),
    _i('append to loggers', BROKER_LOGGER, '0', 'kafka.server.KafkaApis', APPEND, 'DEBUG'),
    _i('delete of loggers', BROKER_LOGGER, '0', 'kafka.server.KafkaApis', DELETE),
]

METRICS_STEPS: List[Step] = [
    _i('set', CLIENT_METRICS, '', 'interval.ms', SET, '5000'),
    _i('match', CLIENT_METRICS, '', 'match', SET, 'client_id=a.*'),
    _i('bad interval', CLIENT_METRICS, '', 'interval.ms', SET, '5'),
    _i('bad match', CLIENT_METRICS, '', 'match', SET, 'planet=earth'),
    _i('unknown', CLIENT_METRICS, '', 'no.such', SET, '5'),
    _told('told', CLIENT_METRICS, ''),
    Step('listed', LIST_CONFIG_RESOURCES, lambda c: {'resource_types': [CLIENT_METRICS]}),
    _i('delete', CLIENT_METRICS, '', 'interval.ms', DELETE),
    _i('delete match', CLIENT_METRICS, '', 'match', DELETE),
    _told('told at last', CLIENT_METRICS, ''),
    Step('listed at last', LIST_CONFIG_RESOURCES, lambda c: {'resource_types': [CLIENT_METRICS]}),
]

GROUP_STEPS: List[Step] = [
    _i('set', GROUP, '', 'consumer.session.timeout.ms', SET, '46000'),
    _i('too short', GROUP, '', 'consumer.session.timeout.ms', SET, '1000'),
    _i('no number', GROUP, '', 'consumer.session.timeout.ms', SET, 'soon'),
    _i('unknown', GROUP, '', 'no.such', SET, '5'),
    _told('told', GROUP, '', 'consumer.session.timeout.ms', 'consumer.heartbeat.interval.ms'),
    _i('delete', GROUP, '', 'consumer.session.timeout.ms', DELETE),
    _told('told at last', GROUP, '', 'consumer.session.timeout.ms'),
]

SETTINGS_SCRIPT = [
    Scenario(
        'broker settings', (ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS), BROKER_STEPS, since=(1, 1)
    ),
    Scenario(
        'metrics settings',
        (INCREMENTAL_ALTER_CONFIGS, LIST_CONFIG_RESOURCES),
        METRICS_STEPS,
        since=(3, 7),
    ),
    Scenario('group settings', (INCREMENTAL_ALTER_CONFIGS,), GROUP_STEPS, since=(4, 0)),
    one('resources of two types', LIST_CONFIG_RESOURCES, lambda c: _resources(c), versions='1+'),
]


def _resources(c: Any) -> Dict[str, Any]:
    return {'resource_types': [BROKER, BROKER_LOGGER, CLIENT_METRICS]}


#: What clients send; those that others of the script ask in a refused version are not here.
CLIENT_APIS = [
    *range(12, 17),
    17,
    *range(20, 27),
    *range(28, 36),
    *range(36, 52),
    *(55, 57, 60, 61, 64, 65, 66, 68, 69, 74, 75, 76, 77, 78, 79, 80, 81, 88, 89, 90, 91, 92),
]

REFUSED_SCRIPT = [
    one('refused', api, lambda c: {}, versions=REFUSED_ABOVE, since=(0, 10))
    for api in CLIENT_APIS
    if request_class(api)
]

SCRIPT = [*SETTINGS_SCRIPT, *REFUSED_SCRIPT]
