"""State machines for groups (and, later, transactions): requests and the time go in, replies and rows come out."""
