// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "path.h"

/*
 * The kernel refuses a connection to a socket file whose process is gone. A stream
 * socket that is bound but does not listen yet refuses as well: of two models that are
 * started with the same path at the same moment the later one wins.
 */
static int remove_stale(const struct sockaddr_un *addr, int type)
{
	struct stat st;
	int fd, err;

	if (lstat(addr->sun_path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	err = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) ? errno : 0;
	close(fd);
	/* EPROTOTYPE, EACCES, EAGAIN: a process is bound to it. */
	if (err != ECONNREFUSED)
		return -EADDRINUSE;
	return unlink(addr->sun_path) ? -errno : 0;
}

int path_bind(const char *path, int type)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	mode_t mask;
	int fd, err;

	if (!*path)
		return -EINVAL;
	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	strcpy(addr.sun_path, path);
	err = remove_stale(&addr, type);
	if (err)
		return err;
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* The mode has to be right from the start, not only after a chmod(). */
	mask = umask(0177);
	err = bind(fd, (struct sockaddr *)&addr, sizeof(addr)) ? -errno : 0;
	umask(mask);
	if (!err)
		return fd;
	close(fd);
	return err;
}

int path_create(const char *path)
{
	/* O_NONBLOCK: to open a FIFO without a reader would block before its type is known. */
	int flags = O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	int fd = open(path, flags | O_CREAT | O_EXCL, 0600), err = 0;
	struct stat st;

	if (fd >= 0 || errno != EEXIST)
		return fd < 0 ? -errno : fd;
	fd = open(path, flags);
	if (fd < 0)
		return errno == ENXIO ? -EEXIST : -errno;
	if (fstat(fd, &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode))
		err = -EEXIST;
	else if (st.st_uid != geteuid())
		err = -EPERM;
	else if (ftruncate(fd, 0))
		err = -errno;
	if (!err)
		return fd;
	close(fd);
	return err;
}
