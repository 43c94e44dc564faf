"""What the kernels cost, measured beside others in one run: ``canaryproof benchmark kernels``."""
