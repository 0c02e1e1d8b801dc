"""Where a secured embedded broker may answer otherwise than a real one, with the reason."""

from __future__ import annotations

from typing import List

from test.differential.deviations import Deviation

DEVIATIONS: List[Deviation] = [
    Deviation(
        r'alice: fetch-1-v[0-3]/ask',
        r'responses\[.*\]\.partitions\[0\]\.error_code',
        '0.11 fails at the older format of what has no records, where another partition has some',
        since=(0, 11),
        until=(0, 11),
        holds=lambda real, ours: real == -1,
    ),
    Deviation(
        r'dave: fetch as a follower-1-v\d+/ask',
        r'responses\[.*\]\.partitions\[0\]'
        r'\.(error_code|high_watermark|last_stable_offset|log_start_offset|records\[#\d+\])',
        'a leader gives no records to a follower that is no replica of the partition, in 3.9 and'
        ' 4.4 with an error, before without; embedded brokers replicate nothing, and give them to'
        ' whoever may be a follower',
        holds=lambda real, ours: real in (6, -1, '<absent>') and ours not in (-1, '<absent>'),
    ),
    Deviation(
        r'(carol|dave): (log dirs-35|config resources-74)-v\d+/ask',
        r'(results\[#0\]\.topics|config_resources)\[(2 )?__(consumer_offsets|transaction_state)\]',
        'embedded brokers keep offsets and transactions in no topics',
        holds=lambda real, ours: ours == '<absent>',
    ),
    Deviation(
        r'carol: quorum-55-v\d+/ask',
        r'topics\[__cluster_metadata\]\.partitions\[0\]'
        r'\.(high_watermark|current_voters\[0\]\.log_end_offset)',
        'what the log of the quorum holds is no part of what is asked',
        since=(3,),
        holds=lambda real, ours: min(real, ours) > 0,
    ),
]
