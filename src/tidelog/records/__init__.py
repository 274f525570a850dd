"""Record batches as bytes: header view, validation, builder, compression, CRC, columnar kernels.

`batch` defines the format; `record` is the slow path to single records; `columnar` (extra `columnar`) is the fast
path to many. The format is described in docs/formats/record-batch.md.
"""
