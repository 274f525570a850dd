"""Kafka's protocol over TCP: `server` listens, `connection` is one client, `api/` has one module per API key."""
