"""The columns of rows, and the choice of some of them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kafka.errors import KafkaConfigurationError
from kafka.spark.rows import COLUMNS, columns_of, ddl, plain_names


def schema(**types):
    """A schema as Spark hands it over; a type with ! is never null."""
    return SimpleNamespace(
        fields=[
            SimpleNamespace(
                name=name,
                dataType=SimpleNamespace(simpleString=lambda kind=kind: kind.rstrip('!')),
                nullable=not kind.endswith('!'),
            )
            for name, kind in types.items()
        ]
    )


def test_the_schema_is_that_of_the_jvm_connector():
    assert ddl(False) == (
        'key binary, value binary, topic string, partition int, offset bigint,'
        ' timestamp timestamp, timestampType int'
    )
    assert ddl(True) == ddl(False) + ', headers array<struct<key:string,value:binary>>'


def test_all_columns():
    assert columns_of(schema(**COLUMNS), False) == tuple(COLUMNS)


def test_a_program_may_choose_some_in_its_order():
    assert columns_of(schema(offset='bigint', value='binary'), False) == ('offset', 'value')


@pytest.mark.parametrize(
    'types, told',
    [
        ({'value': 'string'}, 'column value the type string; it must be binary'),
        ({'body': 'binary'}, 'names the column body; the columns are key, value'),
        ({'headers': 'array<struct<key:string,value:binary>>'}, 'set includeHeaders to true'),
        ({'offset': 'bigint!'}, 'offset is never null'),
        ({}, 'has no column'),
    ],
)
def test_what_cannot_be_read_is_refused(types, told):
    with pytest.raises(KafkaConfigurationError, match=told):
        columns_of(schema(**types), False)


def test_a_column_that_is_named_twice_is_refused():
    twice = schema(value='binary')
    twice.fields *= 2
    with pytest.raises(KafkaConfigurationError, match='column value twice'):
        columns_of(twice, False)


def test_headers_are_a_column_where_they_are_included():
    assert columns_of(schema(headers='array<struct<key:string,value:binary>>'), True) == (
        'headers',
    )


def test_the_decoder_has_names_of_python():
    assert plain_names(('value', 'timestampType')) == ('value', 'timestamp_type')
