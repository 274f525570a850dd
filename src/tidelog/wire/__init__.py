"""The Kafka protocol without I/O: bytes in, values out; values in, bytes out.

    envelope         requests and responses with their headers, as frames: what a gateway and a client call
    framing          cuts the stream of a connection into frames
    apis             the table of APIs and their versions; loads an API's codecs on first use
    error_codes      Kafka's error codes
    codec            one message at one version <-> bytes
    embedded         data formats that travel inside `bytes` fields, with their version in front
    protocol_errors  errors of the protocol, the peer's and ours
    primitives, reading, writing    the base of the generated modules
    generated        one module per API; made by `tools/wiregen`, never edited

`docs/formats/wire.md` has the rules.
"""
