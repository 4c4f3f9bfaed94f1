"""MPIJob (v2beta1): workers that listen, a launcher that starts the program on them, and what both need to find each other."""
