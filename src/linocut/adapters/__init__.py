"""Other people's tools, each in a file of its own that is imported only when asked for."""
