"""What runs on a host: stdlib only, Python 3.9+, sent over stdin with every call; nothing has to be installed."""
