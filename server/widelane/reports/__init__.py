"""Text from results: pure functions from the models to lines, shared by every surface that shows them to people.

Every text that came from outside (plans, logs, providers) goes through `clean` before it reaches a terminal.
"""
