"""The consumers."""

from __future__ import annotations

from kafka.consumer.simple import SimpleConsumer

__all__ = ['SimpleConsumer']
