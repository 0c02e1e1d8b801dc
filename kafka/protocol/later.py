"""A lazy sequence of messages for a produce request of 0.9.5.

``MessagesLater`` stands for the result of ``create_message_set`` and keeps the columns that it is
made from. For a broker with magic 2 the batch is encoded from the columns, and no message objects
are created (benchmarks/simple.py). They are created when a program accesses them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, List, Optional
from typing import Sequence as SequenceOf

from kafka.record.default_records import encode_message_batch

Field = Optional[bytes]


class MessagesLater(Sequence):  # type: ignore[type-arg]  # not subscriptable in Python 3.8
    """A sequence of messages, equal to the list or tuple of them.

    Arguments: values, keys: of the messages, bytes or None each; codec, compresslevel: for the
    batch; make: creates the messages as in 0.9.5.
    """

    __slots__ = ('_made', '_make', 'codec', 'compresslevel', 'keys', 'values')

    def __init__(
        self,
        values: SequenceOf[Field],
        keys: SequenceOf[Field],
        codec: int,
        compresslevel: Optional[int],
        make: Callable[[], List[Any]],
    ) -> None:
        self.values = values
        self.keys = keys
        self.codec = codec
        self.compresslevel = compresslevel
        self._make = make
        self._made: Optional[List[Any]] = None

    def batch(self, now_ms: int) -> bytes:
        """Return the messages as one batch of magic 2, all with this timestamp.

        Raises: UnsupportedCodecError when a codec is missing.
        """
        return encode_message_batch(self.keys, self.values, now_ms, self.codec, self.compresslevel)

    @property
    def messages(self) -> List[Any]:
        """The messages; the same list at each access."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def __len__(self) -> int:
        return len(self.messages)

    def __getitem__(self, index: Any) -> Any:
        return self.messages[index]

    def __iter__(self) -> Any:
        return iter(self.messages)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (list, tuple, MessagesLater)):
            return NotImplemented
        return self.messages == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self.messages))

    def __add__(self, other: Any) -> List[Any]:
        return self.messages + list(other)

    def __radd__(self, other: Any) -> List[Any]:
        return list(other) + self.messages

    def __repr__(self) -> str:
        return repr(self.messages)

    def __reduce__(self) -> Any:
        return list, (self.messages,)
