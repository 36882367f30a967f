"""The program that runs on a host: Python 3.9+, standard library only, shipped as one zipapp.

command     the command line; lock, prepare, run to the end
prepare     spec, work folder, devices: everything before the first process
dispatch    what one dispatch does with the engine: setup, units, merge, finish
engine      starts attempts, adopts them, hears of their ends
zygote      forks one supervisor for each attempt
supervise   one attempt: start record, the process, its left-overs, exit record
attempt     the attempt folder: names, records, the lock that means "alive"
outputs     which declared outputs are there, and fresh
publish     outputs, log and record of one ended attempt to the store
state       jobs and attempts in SQLite
store       the store client, used by the controller too
"""
