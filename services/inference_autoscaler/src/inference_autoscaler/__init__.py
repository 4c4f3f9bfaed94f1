"""How many replicas, and which revision gets what share?"""
