"""The kernels as proven enclosures, in ball arithmetic (python-flint's ``arb``)."""
