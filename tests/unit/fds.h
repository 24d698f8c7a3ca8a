/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Descriptors that go with a message of vfio-user.
 */
#ifndef SKUA_TESTS_FDS_H
#define SKUA_TESTS_FDS_H

#include <string.h>
#include <sys/socket.h>

/* The most that the kernel sends with one message (SCM_MAX_FD) */
#define FDS_MAX	253

/* Room for the control data. */
union fds_control {
	struct cmsghdr align;
	char room[CMSG_SPACE(sizeof(int) * FDS_MAX)];
};

/* Have descriptors go with a message; without any it has no control data. */
static inline void fds_attach(struct msghdr *mh, union fds_control *control, const int *fds,
			      unsigned int nfds)
{
	struct cmsghdr *cm;

	if (!nfds)
		return;
	memset(control, 0, CMSG_SPACE(sizeof(int) * nfds));
	mh->msg_control = control;
	mh->msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
	cm = CMSG_FIRSTHDR(mh);
	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
	memcpy(CMSG_DATA(cm), fds, sizeof(int) * nfds);
}

#endif /* SKUA_TESTS_FDS_H */
