"""The experiment queue on a host: many runs over its cards, one scheduler, supervisors that outlive it."""
