"""Makes `src/tidelog/wire/generated` from `messages/*.txt`: run `python -m tools.wiregen`.

    schema        the compact form and its parser
    source        lines of Python being written, and runs of fixed-width fields merged into one `struct` call
    classes       a struct -> its class
    readers       a struct at one version -> the code that reads it
    writers       a struct at one version -> the code that writes it
    modules       a definition -> its module; the table of APIs
    import_facts  Kafka's JSON -> the compact form, for a newer release of Kafka

`docs/formats/wire.md` describes the compact form.
"""
