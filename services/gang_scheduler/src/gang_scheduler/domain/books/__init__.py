"""The books of the cluster: facts are folded here."""
