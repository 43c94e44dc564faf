"""Tasks, and the processes and machines that do them."""
