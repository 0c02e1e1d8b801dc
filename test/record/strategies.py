"""What hypothesis makes records of: mostly sizes near the places where a varint becomes wider."""

from __future__ import annotations

from hypothesis import strategies as st

# A record's own varints and the length of the record change their widths around these.
EDGES = (0, 1, 2, 30, 50, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 70, 100, 127, 128, 200)

sizes = st.one_of(st.sampled_from(EDGES), st.integers(0, 300))


@st.composite
def blobs(draw):
    """Draw bytes of an edgy length; their content repeats so that drawing stays cheap."""
    size = draw(sizes)
    pattern = draw(st.binary(min_size=1, max_size=6))
    return (pattern * (size // len(pattern) + 1))[:size]


fields = st.one_of(st.none(), blobs())
names = st.one_of(st.sampled_from(['h', 'content-type', 'Größe', '']), st.text(max_size=6))
headers = st.one_of(
    st.just(()),
    st.just((('trace', b'0123456789abcdef'),)),
    st.lists(st.tuples(names, fields), max_size=3).map(tuple),
)
timestamps = st.one_of(
    st.integers(0, 70),
    st.integers(0, 10000),
    st.integers(-(1 << 40), 1 << 40),
)
# Streaks of similar records take the fast ways, the odd one out must not derail them.
plain_rows = st.tuples(timestamps, st.none(), fields, st.just(()))
keyed_rows = st.tuples(timestamps, fields, fields, headers)


@st.composite
def rows(draw, max_size=40):
    """Draw (timestamp, key, value, headers) tuples for one batch."""
    base = draw(st.sampled_from([0, 1, 1600000000000]))
    kind = draw(st.sampled_from([plain_rows, keyed_rows, st.one_of(plain_rows, keyed_rows)]))
    chosen = draw(st.lists(kind, min_size=1, max_size=max_size))
    repeats = draw(st.integers(1, 4))
    return [(base + stamp, key, value, head) for stamp, key, value, head in chosen] * repeats
