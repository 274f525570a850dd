"""The broker: topics, partitions, long polls, coordination. It is independent of protocols: gateways translate."""
