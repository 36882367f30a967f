"""Runs units on a host: stdlib only, Python 3.9+, shipped as one generated file.

Everything under `host/` goes into the file and imports nothing of ours but itself.
"""
