"""The shared pool: order, errors, and work that asks for workers itself."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from lmgauge.base.threads import StoppedError, go_on, map_as_done, map_beside, map_in_order, run_ranges

NESTED = """
from lmgauge.base.threads import map_in_order, run_ranges

def work(i):
    sums = sum(map_in_order(lambda j: 10 * i + j, range(2), 2))
    return sums, list(map_in_order(abs, [-i], 2)), run_ranges(lambda a, b: b - a, 5, 2)

print(list(map_in_order(work, range(2), 2)), list(map_in_order(work, range(3), 2)))
"""


def test_workers_that_ask_for_workers_do_not_wait_for_each_other() -> None:
    # A program of its own: where they wait, they wait forever.
    done = subprocess.run([sys.executable, "-c", NESTED], capture_output=True, text=True, timeout=60, check=True)
    each = [(1, [0], [2, 3]), (21, [1], [2, 3]), (41, [2], [2, 3])]
    assert done.stdout == f"{each[:2]} {each}\n"


def test_order_does_not_depend_on_threads() -> None:
    for threads in (1, 2, 3):
        assert sum(run_ranges(lambda begin, end: end - begin, 7, threads)) == 7
        assert list(map_in_order(abs, [-3, 1, -2], threads)) == [3, 1, 2]
        assert list(map_beside(abs, [-3, 1, -2], threads)) == [3, 1, 2]
        assert sorted(map_as_done(abs, [-3, 1, -2], threads)) == [(-3, 3), (-2, 2), (1, 1)]


def test_items_are_yielded_as_they_are_done_and_few_are_at_work() -> None:
    second, at_work, most = threading.Event(), 0, 0

    def work(item: int) -> None:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        assert item or second.wait(60)  # the first item is done after the second one
        at_work -= 1

    order = []
    for item, _ in map_as_done(work, range(5), threads=2):
        order.append(item)
        second.set()
    assert sorted(order) == [0, 1, 2, 3, 4]
    assert (order[0], most) == (1, 2)


@pytest.mark.parametrize("threads", [1, 2])
def test_errors_of_workers_are_raised(threads: int) -> None:
    with pytest.raises(ZeroDivisionError):
        run_ranges(lambda begin, end: 1 // begin, threads, threads)
    with pytest.raises(ZeroDivisionError):
        list(map_in_order(lambda i: 1 // i, [1, 0], threads))
    with pytest.raises(ZeroDivisionError):
        list(map_as_done(lambda i: 1 // i, [1, 0], threads))


@pytest.mark.parametrize(
    "run",
    [
        lambda work: run_ranges(lambda begin, end: work(begin), 3, 3),
        lambda work: list(map_in_order(work, range(3), 3)),
        lambda work: list(map_as_done(work, range(3), 3)),
    ],
)
def test_workers_that_wait_stop_when_another_fails(run: Callable[[Callable[[int], None]], object]) -> None:
    begun, free, stopped = threading.Barrier(3, timeout=10), threading.Barrier(3, timeout=10), list[int]()

    def work(item: int) -> None:
        begun.wait()
        if item == 0:
            raise ZeroDivisionError
        try:
            go_on(60)
        except StoppedError:
            stopped.append(item)
            raise

    with pytest.raises(ZeroDivisionError):
        run(work)
    list(map_in_order(lambda _: free.wait(), range(3), 3))
    assert sorted(stopped) == [1, 2]


FORKED = """
import multiprocessing, os, warnings
warnings.simplefilter("ignore")  # of forks of a process that has threads, which this is about
import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import UsageError
from lmgauge.base.threads import OfProcess, map_as_done, map_in_order

model = lmgauge.train("kneser-ney", Corpus.from_strings(["the cat sat", "the dog sat"]))
locks = [model.tables.whole(eos=True)._lock, OfProcess(list)]
locks[1].value.append("a connection")

def score(i):
    return lmgauge.evaluate(model, Corpus.from_strings(["the cat"] * 3), threads=2).perplexity

def refused(step):
    try:
        return list(step)
    except UsageError as error:
        return str(error).partition(";")[0]

expected = score(0)
in_order, as_done = map_in_order(abs, range(9), 2), map_as_done(abs, range(9), 2)
next(in_order), next(as_done)
with locks[0].value:  # as if another thread were in the midst of it
    child = os.fork()
if child == 0:
    with locks[0].value:
        print(score(1) == expected, locks[1].value, refused(in_order), "|", refused(as_done), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(locks[1].value, len(list(in_order)), len(list(as_done)))
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(score, range(4)) == [expected] * 4)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_forked_children_have_pools_and_locks_of_their_own() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=60, check=True)
    refusal = "this process was forked in the middle of work that threads of its parent do"
    assert done.stdout.splitlines() == [f"True [] {refusal} | {refusal}", "['a connection'] 8 8", "True"]
