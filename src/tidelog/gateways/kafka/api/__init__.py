"""One module per API key: all its versions, opening with its behaviour. Each has `handle(request, message)`."""
