"""How the world reaches the broker. Gateways translate; the broker decides."""
