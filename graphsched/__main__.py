"""`python -m graphsched` is `graphsched`: the same program where the console script is not on the PATH."""

from graphsched.app import cli

cli.main()
