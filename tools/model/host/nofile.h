/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The table of file descriptors of the process.
 *
 * It grows with the highest descriptor in use. In a process with several threads the one
 * whose accept() or recvmsg() needs a larger table sleeps in the kernel for an RCU grace
 * period, which can take 10 ms and more: a client that passes many descriptors, or
 * connects often, would stop the thread that serves all of them. So the table is made
 * large enough before there is a second thread, and the process may not have more
 * descriptors than fit into it.
 */
#ifndef SKUA_HOST_NOFILE_H
#define SKUA_HOST_NOFILE_H

/*
 * Make room for @num descriptors, or for as many as the hard limit of the process allows.
 * Call it while the process has one thread. Returns how many it may have from now on, or
 * a negative errno.
 */
int nofile_reserve(unsigned int num);

#endif /* SKUA_HOST_NOFILE_H */
