"""What happens on one node: it runs the node's pods as processes, measures them and reports."""
