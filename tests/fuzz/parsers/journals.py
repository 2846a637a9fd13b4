"""Notes of what is done, and journals of scores of networks, changed: what is not as it was written is not taken."""

from __future__ import annotations

import random
import zlib
from pathlib import Path

import numpy as np

from lmgauge.models.network.engine import Job
from lmgauge.models.network.torch.engine import Journal
from lmgauge.work.manifest import Notes
from tests.fuzz.mutations import changed, changed_lines
from tests.fuzz.table import Attempt


def prepare(folder: Path) -> Attempt:
    path = folder / "journal"
    jobs = [Job(np.arange(1, 4 + n), np.arange(2, 5 + n), 0) for n in range(6)]
    scores = [-np.arange(1.0, 4.0 + n) / 3 for n in range(6)]
    journal = Journal(path, "model")
    for job, own in zip(jobs, scores, strict=True):
        journal.put(job, own)
    journal.close()
    whole, known = path.read_bytes(), dict(Notes(path))

    def attempt(chance: random.Random) -> str:
        content = changed_lines(whole, chance, 2) if chance.random() < 0.4 else changed(whole, chance, 3)
        if honest := chance.random() < 0.7:
            path.write_bytes(content)
        else:  # with sums made anew, a line is as good as one that was written
            lines = [line[9:] for line in content.split(b"\n")]
            path.write_bytes(b"".join(b"\n%08x %s" % (zlib.crc32(line), line) for line in lines))
        read = Journal(path, "model")
        for job, own in zip(jobs, scores, strict=True):
            there = read.get(job)
            assert not honest or there is None or np.array_equal(there, own)
        read.put(jobs[0], scores[0])
        read.close()
        again = Journal(path, "model").get(jobs[0])
        assert again is not None
        assert np.array_equal(again, scores[0]), "what was put in last is not what is found"
        assert not honest or dict(Notes(path)).items() <= known.items()
        return "read"

    return attempt
