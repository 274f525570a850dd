"""The protocols through which clients reach the broker. Gateways translate; the broker decides."""
