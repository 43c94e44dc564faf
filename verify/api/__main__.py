"""The command line as ``python -m canaryproof``."""

from canaryproof.verify.command_line import main

main(prog_name="canaryproof")
