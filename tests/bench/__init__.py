"""Speed: each figure is one run on this machine, with a reference measured in the same run beside it."""
