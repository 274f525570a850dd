"""One module per API; made by tools/wiregen, never edited."""
