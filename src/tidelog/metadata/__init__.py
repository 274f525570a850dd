"""Everything that is not records: rows behind one `MetadataStore`.

`rows` says what is kept, `store` how it is asked, `snapshot` looks at it from outside of a broker.
"""
