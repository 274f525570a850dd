"""Metadata, everything that is not records: rows in a `MetadataStore`.

`rows` defines the tables and `store` the interface. `opening` opens a store: nothing outside of this package knows
which engine it is.
"""
