/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sockets and files that the model creates at paths given by the user. Only the owner may access
 * them, symbolic links are not followed, and neither files of other users nor sockets that a
 * process is bound to are removed or overwritten.
 */
#ifndef SKUA_HOST_PATH_H
#define SKUA_HOST_PATH_H

/*
 * A socket of @type (SOCK_STREAM, SOCK_DGRAM), non-blocking and close-on-exec, bound to
 * @path with mode 0600. A socket file that no process is bound to any more is replaced.
 * Returns a descriptor, or a negative errno: -EADDRINUSE if a process is bound to it, -EEXIST
 * if there is another kind of file, -ENAMETOOLONG, or an error of the kernel.
 */
int path_bind(const char *path, int type);

/*
 * Open the regular file @path for writing and truncate it; it is created with mode 0600 if it
 * does not exist. Returns a descriptor, or a negative errno: -ELOOP for a symbolic link, -EEXIST
 * for other files that are not regular, -EPERM for a file of another user.
 */
int path_create(const char *path);

#endif /* SKUA_HOST_PATH_H */
