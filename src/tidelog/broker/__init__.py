"""The broker: topics, partitions, waits, coordination. It knows nothing of the wire: gateways translate."""
