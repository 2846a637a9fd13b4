"""`python -m lmgauge`."""

from lmgauge.cli.main import main

main()
