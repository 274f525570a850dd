"""`Order` in PostgreSQL: tables, functions, and the client of both."""
