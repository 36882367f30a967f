"""A simulated Compute Engine: REST v1 with finite stock, quotas and faults, whose VMs run real processes.

`client` starts and finds a server and is light to import; `server` is the server itself; `scenario` says what
the simulated cloud has to give. Product code: used for rehearsal (`--sim`) and by the tests.
"""
