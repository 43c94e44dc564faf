"""What people look at: tables and pictures made from a finished run."""
