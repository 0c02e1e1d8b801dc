"""Serializers and deserializers: the conversion of keys and values (1.3.2 to 3.0)."""

from __future__ import annotations

from kafka.serializer.abstract import Deserializer, Serializer
from kafka.serializer.default import DefaultSerializer, JsonSerializer

__all__ = ['DefaultSerializer', 'Deserializer', 'JsonSerializer', 'Serializer']
