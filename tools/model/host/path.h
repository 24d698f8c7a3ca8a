/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sockets and files that the model makes at a path of the user's choice. They are the
 * owner's alone, a symbolic link is never followed, and nothing that belongs to
 * somebody else, or that a living process listens at, is removed or overwritten.
 */
#ifndef SKUA_HOST_PATH_H
#define SKUA_HOST_PATH_H

/*
 * A socket of @type (SOCK_STREAM, SOCK_DGRAM), non-blocking and close-on-exec, bound to
 * @path with mode 0600. A socket file that no process is bound to any more is replaced.
 * A descriptor, or a negative errno: -EADDRINUSE if a process is bound to it, -EEXIST if
 * something else is there, -ENAMETOOLONG, or whatever the kernel says.
 */
int path_bind(const char *path, int type);

/*
 * A regular file at @path, open for writing, empty; made with mode 0600 if there is
 * none. A descriptor, or a negative errno: -ELOOP for a symbolic link, -EEXIST for
 * anything else that is no regular file, -EPERM for a file of another user.
 */
int path_create(const char *path);

#endif /* SKUA_HOST_PATH_H */
