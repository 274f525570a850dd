"""The object stores: `opening.py` chooses one by its URL."""
