"""The storage engine of a cluster: immutable objects in an object store, and a database that decides their order."""
