"""`python -m widelane.cli`."""

from widelane.cli.main import main

main()
