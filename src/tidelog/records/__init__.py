"""Record batches as bytes: header view, validation, builder, compression, CRC, columnar kernels.

`batch` is the format's home; `record` is the slow path to single records; `columnar` (extra `columnar`) is the fast
path to many. The prose is in docs/formats/record-batch.md.
"""
