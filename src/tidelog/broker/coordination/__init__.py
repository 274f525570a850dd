"""State machines for groups and transactions, without I/O: requests and the time go in, replies and rows come out."""
