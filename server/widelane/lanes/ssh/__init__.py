"""A host with GPUs that is reached by ssh, as a lane."""
