"""What the lane does on the cluster itself, login host and nodes: stdlib only, Python 3.9+."""
