"""SLURM clusters: a machine is one job, which holds GPUs of one node and runs the runner in them."""
