"""Experiment queue: a manifest becomes jobs, which run on a host or a cluster; their states and report come back."""
