// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "nofile.h"

int nofile_reserve(unsigned int num)
{
	struct rlimit lim;
	int fd, last;

	if (getrlimit(RLIMIT_NOFILE, &lim))
		return -errno;
	if (num > lim.rlim_max)
		num = lim.rlim_max;
	lim.rlim_cur = num;
	if (setrlimit(RLIMIT_NOFILE, &lim))
		return -errno;
	/* A high descriptor makes the table large; it never shrinks. */
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	last = fcntl(fd, F_DUPFD_CLOEXEC, (int)num - 1);
	if (last < 0)
		last = -errno;
	else
		close(last);
	close(fd);
	return last < 0 ? last : last + 1;
}
