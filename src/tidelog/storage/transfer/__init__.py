"""Moving logs between the two engines: from a data directory into a cluster, and back. The only package that knows
both."""
