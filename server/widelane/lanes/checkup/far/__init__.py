"""What the checks ask on a host itself: stdlib only, Python 3.9+, reads alone."""
