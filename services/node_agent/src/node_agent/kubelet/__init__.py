"""The agent beside a kubelet, which runs the pods: it measures them, and says what devices the node has."""
