#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""alltoall.py ROUNDS: each MPI rank sends each other one what only the two of them and the
round make, of several sizes, and looks at every byte that it gets."""
import random
import socket
import sys

from mpi4py import MPI

SIZES = [1, 64, 5000, 300000]


def message(src, dst, size, turn):
    return random.Random(f"{src} {dst} {size} {turn}").randbytes(size)


def main():
    comm = MPI.COMM_WORLD
    me, ranks = comm.Get_rank(), comm.Get_size()
    hosts = comm.allgather(socket.gethostname())
    bad = 0
    for turn in range(int(sys.argv[1])):
        for size in SIZES:
            out = b"".join(message(me, to, size, turn) for to in range(ranks))
            got = bytearray(size * ranks)
            comm.Alltoall([out, MPI.BYTE], [got, MPI.BYTE])
            bad += sum(got[src * size:(src + 1) * size] != message(src, me, size, turn)
                       for src in range(ranks))
    bad = comm.allreduce(bad)
    if me == 0:
        print(f"alltoall: {ranks} ranks on {len(set(hosts))} hosts, {bad} messages wrong")
    sys.exit(bool(bad))


main()
