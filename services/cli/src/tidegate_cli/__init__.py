"""The command line of Tidegate, in the manner of kubectl."""

import os

# Read once, when grpc is imported. Processes of ours are forked to become other programs at once: what gRPC does around a fork helps
# nobody then, and can end the supervisor ("epoll_wait error: Bad file descriptor").
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
