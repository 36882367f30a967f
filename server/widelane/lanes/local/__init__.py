"""This host as a lane: a phase without GPU runs as a detached process."""
