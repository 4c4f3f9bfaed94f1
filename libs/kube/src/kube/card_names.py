"""The resources by which pods ask for cards, as the device plugins of NVIDIA, Volcano and Koordinator name them."""

WHOLE_CARDS = ("nvidia.com/gpu", "volcano.sh/gpu-number")
CARD_MEMORY = "volcano.sh/gpu-memory"
"""MiB of one card."""

GPU_CORE, GPU_RATIO, GPU_MEMORY = (f"koordinator.sh/{name}" for name in ("gpu-core", "gpu-memory-ratio", "gpu-memory"))
GPU, GPU_SHARED = "koordinator.sh/gpu", "koordinator.sh/gpu.shared"
"""Asked for by pods alone: so many percent of cores and memory, and of how many cards; devices offer the parts."""

VGPU_NUMBER, VGPU_MEMORY = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory"
VGPU_CORES, VGPU_PERCENT = "volcano.sh/vgpu-cores", "volcano.sh/vgpu-memory-percentage"
