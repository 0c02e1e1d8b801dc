"""The query of the example: readings from one topic, their means in windows into another.

Owns what Spark does. This is what you would change first: the columns of your events, your windows,
your topics. Knows nothing of where the events come from.
"""

from typing import Any, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

FORMAT = 'kafka-py'
EVENT = 'number BIGINT, room STRING, at TIMESTAMP, celsius DOUBLE'
WINDOW = '5 minutes'
#: For so long a window waits for what is out of order. What comes later than that is dropped.
WATERMARK = '10 minutes'


def readings(spark: SparkSession, servers: str, topic: str) -> DataFrame:
    """Return the stream of readings: parsed, each once. Events that are no JSON are left out."""
    lines = (
        spark.readStream.format(FORMAT)
        .option('kafka.bootstrap.servers', servers)
        .option('subscribe', topic)
        .option('startingOffsets', 'earliest')
        .load()
    )
    event = f.from_json(f.col('value').cast('string'), EVENT)
    return (
        lines.select(event.alias('event'))
        .select('event.*')
        .where('at IS NOT NULL')
        .withWatermark('at', WATERMARK)
        .dropDuplicatesWithinWatermark(['number'])
    )


def means(found: DataFrame, rooms: DataFrame) -> DataFrame:
    """Return a row for each room and window, once the window is over."""
    return (
        found.join(f.broadcast(rooms), 'room')
        .groupBy('room', 'limit', f.window('at', WINDOW))
        .agg(
            f.count('*').alias('readings'),
            f.round(f.avg('celsius'), 3).alias('mean'),
            f.min('celsius').alias('lowest'),
            f.max('celsius').alias('highest'),
        )
        .select(
            'room',
            f.date_format('window.start', "yyyy-MM-dd'T'HH:mm:ss'Z'").alias('start'),
            'readings',
            'mean',
            'lowest',
            'highest',
            'limit',
            (f.col('mean') > f.col('limit')).alias('alarm'),
        )
    )


def start(
    spark: SparkSession,
    servers: str,
    source: str,
    target: str,
    checkpoint: str,
    limits: Mapping[str, float],
) -> Any:
    """Start the query and return it. Its results are JSON, with the room as the key."""
    rooms = spark.createDataFrame(sorted(limits.items()), 'room STRING, limit DOUBLE')
    results = means(readings(spark, servers, source), rooms)
    return (
        results.select(f.col('room').alias('key'), f.to_json(f.struct('*')).alias('value'))
        .writeStream.format(FORMAT)
        .option('kafka.bootstrap.servers', servers)
        .option('topic', target)
        .option('checkpointLocation', checkpoint)
        .option('exactlyOnce', 'true')
        .outputMode('append')
        .start()
    )
