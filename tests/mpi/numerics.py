# SPDX-License-Identifier: BSD-2-Clause
"""An MPI program in Python, as people write them: numpy arrays and pickled
objects, a conjugate gradient solver, a transposed Fourier transform, a
stencil with halos and a task farm. Every rank compares with a serial result."""

import pathlib
import sys

import numpy
from mpi4py import MPI

COMM = MPI.COMM_WORLD
RANK, SIZE = COMM.Get_rank(), COMM.Get_size()


def check(good, what):
    if not good:
        print(f"rank {RANK} of {SIZE}: {what}", file=sys.stderr, flush=True)
        COMM.Abort(1)


def objects():
    """Pickled: lengths are not known to the receiver beforehand."""
    mine = {"rank": RANK, "text": "weft" * RANK * 1000, "list": [RANK] * 50}
    everybody = COMM.allgather(mine)
    check([e["rank"] for e in everybody] == list(range(SIZE)), "allgather")
    check(len(everybody[-1]["text"]) == 4000 * (SIZE - 1), "long texts")
    there = COMM.bcast(mine if RANK == SIZE - 1 else None, root=SIZE - 1)
    check(there["list"] == [SIZE - 1] * 50, "bcast")
    part = COMM.scatter([list(range(r)) for r in range(SIZE)]
                        if RANK == 0 else None)
    check(part == list(range(RANK)), "scatter")
    right, left = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    request = COMM.isend(("ring", RANK), dest=right, tag=4)
    check(COMM.recv(source=left, tag=4) == ("ring", left), "ring")
    request.wait()


def conjugate_gradient(n=240):
    """Rows of a dense positive definite matrix are spread over the ranks."""
    numbers = numpy.random.default_rng(7)
    root = numbers.standard_normal((n, n))
    matrix = root @ root.T + n * numpy.eye(n)
    wanted = numbers.standard_normal(n)
    goal = matrix @ wanted
    bounds = [n * r // SIZE for r in range(SIZE + 1)]
    counts = [bounds[r + 1] - bounds[r] for r in range(SIZE)]
    rows = slice(bounds[RANK], bounds[RANK + 1])
    mine = matrix[rows]

    def product(vector):
        whole = numpy.empty(n)
        COMM.Allgatherv(mine @ vector, [whole, (counts, bounds[:-1])])
        return whole

    def dot(a, b):
        return COMM.allreduce(float(a[rows] @ b[rows]))

    x = numpy.zeros(n)
    rest = goal - product(x)
    way, square = rest.copy(), dot(rest, rest)
    for _ in range(4 * n):
        image = product(way)
        step = square / dot(way, image)
        x += step * way
        rest -= step * image
        new = dot(rest, rest)
        if new < 1e-22 * n:
            break
        way = rest + new / square * way
        square = new
    check(numpy.allclose(x, wanted, rtol=1e-8, atol=1e-8), "solution")


def fourier(n=256):
    """In two dimensions: transform rows, transpose by Alltoall, again."""
    whole = numpy.random.default_rng(11).standard_normal((n, n)) + 0j
    part = n // SIZE
    rows = numpy.fft.fft(whole[RANK * part:(RANK + 1) * part], axis=1)
    out = numpy.ascontiguousarray(
        rows.reshape(part, SIZE, part).transpose(1, 2, 0))
    back = numpy.empty_like(out)
    COMM.Alltoall(out, back)
    columns = back.transpose(1, 0, 2).reshape(part, n)
    result = numpy.fft.fft(columns, axis=1)
    wanted = numpy.fft.fft2(whole).T[RANK * part:(RANK + 1) * part]
    check(numpy.allclose(result, wanted), "transform")


def stencil(n=128, steps=60):
    """Heat spreads over strips that exchange their edges, with requests that
    are made once and started again."""
    whole = numpy.zeros((n, n))
    whole[n // 4:n // 2, n // 3:n // 2] = 100.0
    part = n // SIZE
    mine = numpy.zeros((part + 2, n))
    mine[1:-1] = whole[RANK * part:(RANK + 1) * part]
    up = RANK - 1 if RANK else MPI.PROC_NULL
    down = RANK + 1 if RANK < SIZE - 1 else MPI.PROC_NULL
    requests = [COMM.Send_init(mine[1], up, 1), COMM.Send_init(mine[-2], down,
                                                               2),
                COMM.Recv_init(mine[0], up, 2), COMM.Recv_init(mine[-1], down,
                                                               1)]

    def spread(field):
        inner = field[1:-1, 1:-1]
        inner += 0.2 * (field[:-2, 1:-1] + field[2:, 1:-1] +
                        field[1:-1, :-2] + field[1:-1, 2:] - 4 * inner)

    padded = numpy.zeros((n + 2, n))
    padded[1:-1] = whole
    for _ in range(steps):
        MPI.Prequest.Startall(requests)
        MPI.Request.Waitall(requests)
        spread(mine)
        spread(padded)
        # Outside of the whole grid it stays cold.
    for request in requests:
        request.Free()
    wanted = padded[1 + RANK * part:1 + (RANK + 1) * part]
    check(numpy.allclose(mine[1:-1], wanted), "heat")


def farm(tasks=200):
    """Rank 0 hands out work to whoever asks."""
    if RANK == 0:
        results, status = {}, MPI.Status()
        todo, busy = list(range(tasks)), SIZE - 1
        while busy:
            answer = COMM.recv(source=MPI.ANY_SOURCE, tag=1, status=status)
            if answer:
                results[answer[0]] = answer[1]
            task = todo.pop() if todo else None
            busy -= task is None
            COMM.send(task, dest=status.Get_source(), tag=2)
        check(results == {t: sum(range(t)) for t in range(tasks)}, "farm")
        return
    answer = None
    while True:
        COMM.send(answer, dest=0, tag=1)
        task = COMM.recv(source=0, tag=2)
        if task is None:
            return
        answer = (task, sum(range(task)))


def main():
    for part in (objects, conjugate_gradient, fourier, stencil, farm):
        part()
        COMM.Barrier()
    maps = pathlib.Path("/proc/self/maps").read_text()
    check("/memfd:weft-ring" in maps and "vader_segment" not in maps,
          "not weft")
    if RANK == 0:
        print(f"good: {SIZE} ranks", flush=True)


main()
