"""Training that survives being killed: every step is kept in a checkpoint, and the next life goes on behind it.

Each pod of the task has a file of its own in the volume `checkpoints`, named by VC_TASK_INDEX (plugin env).

Standard library only. STEPS and PAUSE_SECONDS may be set in the manifest.
"""

import json
import os
import time
from pathlib import Path

# Where a machine cannot mount a volume for a pod, a variable names its folder.
FOLDER = Path(os.environ.get("TIDEGATE_VOLUME_CHECKPOINTS", "/checkpoints"))


def save(file, state):
    """Replace the checkpoint as a whole: a kill at any moment leaves the old one or the new one."""
    draft = file.with_name(f"{file.name}.{os.environ['HOSTNAME']}.{os.getpid()}")
    draft.write_text(json.dumps(state))
    draft.replace(file)


def main():
    """The steps that are left."""
    steps, pause = int(os.environ.get("STEPS", "40")), float(os.environ.get("PAUSE_SECONDS", "0.2"))
    file = FOLDER / f"worker-{os.environ['VC_TASK_INDEX']}.json"
    state = json.loads(file.read_text()) if file.exists() else {"step": 0, "lives": 0}
    state["lives"] += 1
    first = state["step"] + 1
    print(f"life {state['lives']} begins with step {first}")
    for step in range(first, steps + 1):
        state["step"] = step
        save(file, state)
        print(f"step {step} of {steps}")
        time.sleep(pause)
    went_on = f", went on with step {first}" if first > 1 else ""
    print(f"checked: {state['step']} steps in life {state['lives']}{went_on}")


if __name__ == "__main__":
    main()
