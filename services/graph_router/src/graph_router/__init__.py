"""Which model answers which step of a graph?"""
