from tidelog.model import TimestampMs
from tidelog.records.batch import ReadBuffer
from tidelog.records.walk import Walked

def walk(
    data: ReadBuffer,
    start: int,
    count: int,
    base_timestamp: TimestampMs,
    is_fixed: bool,
    keys: bool,
    oldest: TimestampMs,
    newest: TimestampMs,
    most_named: int,
    /,
) -> Walked: ...
def frame_bound(codec_id: int, data: ReadBuffer, start: int, /) -> int: ...
