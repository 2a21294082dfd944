"""`python -m interlock`."""

from interlock.surfaces.cli.main import main

main()
