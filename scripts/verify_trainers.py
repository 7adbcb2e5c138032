"""The Python half of `npm run verify:trainers`: reads a job (JSON) from stdin, prints one JSON line a check.

    python3 scripts/verify_trainers.py offline | light | full  < job.json

offline: the reader from the formats alone, standard library only. light: that, and the trainers' code that needs no torch.
full: the trainers' packages imported whole (torch, transformers, datasets).
"""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "trainers"))

import light_checks  # noqa: E402
from job import Job  # noqa: E402


def main():
    part = sys.argv[1]
    job = Job(json.load(sys.stdin))
    if part == "offline":
        light_checks.run_offline(job)
    elif part == "light":
        light_checks.run(job)
    elif part == "full":
        import full_checks

        full_checks.run(job)
    else:
        sys.exit(f"no part is called {part}")


if __name__ == "__main__":
    main()
