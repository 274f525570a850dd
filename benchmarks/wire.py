"""The wire codec: microseconds to decode and to encode, with headers and framing as in the gateway.

    python -m benchmarks.wire

Each figure is the best of many short runs, so that other programs have little influence. The last line is JSON.
"""

import json
import os
import platform
import subprocess
import sys
import timeit
from collections.abc import Callable

from tidelog.wire.apis import BY_NAME, Api
from tidelog.wire.codec import joinable
from tidelog.wire.envelope import (
    Chunks,
    decode_request_body,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from tidelog.wire.framing import FrameReader
from tidelog.wire.generated import fetch, metadata, produce
from tidelog.wire.primitives import Struct

TOPIC_ID = bytes(range(16))


def best_us(run: Callable[[], object]) -> float:
    number = max(1, int(0.002 / min(timeit.repeat(run, number=1, repeat=5))))
    return min(timeit.repeat(run, number=number, repeat=100)) / number * 1e6


def frame_of(chunks: Chunks) -> memoryview:
    return memoryview(b"".join(joinable(chunk) for chunk in chunks))[4:]


def produce_request(partitions: int, record_bytes: int) -> produce.ProduceRequest:
    entries = [produce.PartitionProduceData(number, b"r" * record_bytes) for number in range(partitions)]
    topic = produce.TopicProduceData("orders-eu-west", TOPIC_ID, entries)
    return produce.ProduceRequest(None, -1, 30_000, [topic])


def fetch_request() -> fetch.FetchRequest:
    partitions = [fetch.FetchPartition(number, 3, 1000 * number, -1, -1, 1 << 20) for number in range(10)]
    topics = [fetch.FetchTopic("orders-eu-west", TOPIC_ID, partitions)]
    return fetch.FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, topics=topics)


def fetch_response() -> fetch.FetchResponse:
    records = memoryview(b"r" * 4096)
    partitions = [fetch.PartitionData(number, 0, 5000, 5000, 0, records=records) for number in range(10)]
    return fetch.FetchResponse(responses=[fetch.FetchableTopicResponse("orders-eu-west", TOPIC_ID, partitions)])


def metadata_response() -> metadata.MetadataResponse:
    brokers = [metadata.MetadataResponseBroker(number, "127.0.0.1", 9092) for number in range(3)]
    topics = [
        metadata.MetadataResponseTopic(
            0,
            f"topic-{number}",
            TOPIC_ID,
            partitions=[
                metadata.MetadataResponsePartition(0, part, part, 1, [0, 1, 2], [0, 1, 2]) for part in range(3)
            ],
        )
        for number in range(100)
    ]
    return metadata.MetadataResponse(brokers=brokers, cluster_id="c", controller_id=1, topics=topics)


def request_figures(api: Api, version: int, message: Struct) -> tuple[float, float]:
    frame = frame_of(encode_request(api, version, 7, "client-1", message))

    def decode() -> object:
        return decode_request_body(decode_request_header(frame), frame)

    assert decode() == message or version >= 13  # names are not sent along with ids
    return best_us(decode), best_us(lambda: encode_request(api, version, 7, "client-1", message))


def response_figures(api: Api, version: int, message: Struct) -> tuple[float, float]:
    frame = frame_of(encode_response(api, version, 7, message))
    decode_response(api, version, frame)
    return (
        best_us(lambda: decode_response(api, version, frame)),
        best_us(lambda: encode_response(api, version, 7, message)),
    )


def framing_us() -> float:
    """The time per frame in a stream of 1 KiB frames that fills many buffers; copying into the buffer is included."""
    count = 1000
    stream = memoryview(((1024).to_bytes(4, "big") + bytes(1024)) * count)
    reader = FrameReader()

    def run() -> None:
        reader.feed(stream)

    return best_us(run) / count


def import_ms(module: str) -> float:
    """The time to import the module in a new process, with cached bytecode, after the modules that all need."""
    script = (
        "import time, struct, tidelog.wire.codec, tidelog.wire.writing, tidelog.wire.reading\n"
        f"t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    )
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    runs = [
        float(subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True).stdout)
        for _ in range(4)
    ]
    return min(runs) * 1e3


def main() -> None:
    rows: dict[str, tuple[float, float]] = {}
    produce_api, fetch_api, metadata_api = BY_NAME["Produce"], BY_NAME["Fetch"], BY_NAME["Metadata"]
    for version in (9, 12):
        for title, partitions, size in (("1 x 1 KiB", 1, 1024), ("1 x 64 KiB", 1, 65536), ("10 x 1 KiB", 10, 1024)):
            request = produce_request(partitions, size)
            if version < 13:
                request.topic_data[0].topic_id = bytes(16)
            rows[f"Produce v{version} request, {title}"] = request_figures(produce_api, version, request)
    rows["Fetch v16 request, 10 partitions"] = request_figures(fetch_api, 16, fetch_request())
    rows["Fetch v16 response, 10 x 4 KiB"] = response_figures(fetch_api, 16, fetch_response())
    rows["Metadata v13 response, 100 topics x 3"] = response_figures(metadata_api, 13, metadata_response())
    modules = ("produce", "fetch", "metadata", "heartbeat", "join_group")
    imports = {name: import_ms(f"tidelog.wire.generated.{name}") for name in modules}

    print(f"{platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} cores; headers included")
    print(f"{'':40}{'decode us':>12}{'encode us':>12}")
    for title, (decode, encode) in rows.items():
        print(f"{title:40}{decode:12.2f}{encode:12.2f}")
    framing = framing_us()
    print(f"{'framing, a frame of 1 KiB':40}{framing:12.2f}")
    for name, milliseconds in imports.items():
        print(f"{'import ' + name:40}{milliseconds:12.2f} ms")
    figures = {title: {"decode_us": round(d, 2), "encode_us": round(e, 2)} for title, (d, e) in rows.items()}
    print(
        json.dumps(
            {
                "benchmark": "wire",
                "figures": figures,
                "framing_us": round(framing, 3),
                "import_ms": {name: round(ms, 2) for name, ms in imports.items()},
            }
        )
    )


if __name__ == "__main__":
    main()
