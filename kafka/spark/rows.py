"""The columns of the rows that Spark reads, which are those of the JVM connector.

It also checks the schema that a program gives. kafka.record.vectors makes the columns. Pure.
"""

from __future__ import annotations

from typing import Any, Dict, Sequence, Tuple

from kafka.errors import KafkaConfigurationError

__all__ = ['COLUMNS', 'HEADERS', 'columns_of', 'ddl', 'plain_name']

#: Name -> type, in Spark's notation, in the order of the columns.
COLUMNS: Dict[str, str] = {
    'key': 'binary',
    'value': 'binary',
    'topic': 'string',
    'partition': 'int',
    'offset': 'bigint',
    'timestamp': 'timestamp',
    'timestampType': 'int',
}
#: The additional column of the option includeHeaders.
HEADERS = 'headers'
_HEADERS_TYPE = 'array<struct<key:string,value:binary>>'


def _types(has_headers: bool) -> Dict[str, str]:
    return {**COLUMNS, HEADERS: _HEADERS_TYPE} if has_headers else dict(COLUMNS)


def ddl(has_headers: bool) -> str:
    """Return the schema of all rows in Spark's notation."""
    return ', '.join('%s %s' % each for each in _types(has_headers).items())


def columns_of(schema: Any, has_headers: bool) -> Tuple[str, ...]:
    """Return the columns of a schema: the whole one, or a program's selection.

    Arguments: schema: a StructType.
    Raises: KafkaConfigurationError for a column that is unknown, repeated, not nullable, or has
        another type.
    """
    types = _types(has_headers)
    names = [field.name for field in schema.fields]
    for field in schema.fields:
        found = field.dataType.simpleString()
        if field.name not in types:
            hint = ' (set includeHeaders to true)' if field.name == HEADERS else ''
            raise KafkaConfigurationError(
                'the schema names the column %s%s; the columns are %s'
                % (field.name, hint, ', '.join(types))
            )
        if found != types[field.name]:
            raise KafkaConfigurationError(
                'the schema gives column %s the type %s; it must be %s'
                % (field.name, found, types[field.name])
            )
        if not field.nullable:
            raise KafkaConfigurationError(
                'the schema must not say that column %s is never null' % field.name
            )
        if names.count(field.name) > 1:
            raise KafkaConfigurationError(
                'the schema must not name the column %s twice' % field.name
            )
    if not schema.fields:
        raise KafkaConfigurationError('the schema has no column; choose of %s' % ', '.join(types))
    return tuple(names)


def plain_name(column: str) -> str:
    """Return the name of a column in kafka.record.vectors."""
    return 'timestamp_type' if column == 'timestampType' else column


def plain_names(columns: Sequence[str]) -> Tuple[str, ...]:
    """Return the names of several columns in kafka.record.vectors."""
    return tuple(map(plain_name, columns))
