"""Other people's tools, each called in an environment of its own through one script, and so are our methods."""
