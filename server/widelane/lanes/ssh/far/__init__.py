"""What the lane does on the host itself: stdlib only, Python 3.9+."""
