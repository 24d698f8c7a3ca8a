# SPDX-License-Identifier: GPL-2.0
# Shared by the harness scripts; sourced by bash.
# shellcheck shell=bash

SKUA_VM=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
SKUA_TOP=$(cd "$SKUA_VM/../.." && pwd -P)
SKUA_CACHE=${SKUA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/skua}
# One build directory per checkout, so that two clones do not mix objects.
SKUA_BUILD=$SKUA_CACHE/build/$(printf %s "$SKUA_TOP" | sha256sum | cut -c1-12)

say()
{
	printf '%s: %s\n' "${0##*/}" "$*" >&2
}

die()
{
	say "error: $*"
	exit 125
}

# hash_files FILE...: one short key for the contents of the files
hash_files()
{
	cat -- "$@" | sha256sum | cut -c1-16
}

# unused KEEP FILE...: those, without KEEP, that nobody has used for a week; each ends
# with a NUL
unused()
{
	local keep=$1

	shift
	find "$@" -maxdepth 0 -mtime +7 ! -path "$keep" -print0 2>/dev/null
}

# make_once KIND FILE CMD...: print FILE's path. CMD, a program of its own for "set -e" to
# mean something in it, makes it at the path that is its last word, unless it is there.
# The lock also serves processes that have the same number, in pid namespaces of their
# own.
make_once()
{
	[ -e "$2" ] || with_lock "$1" make_now "$@" || die "$2 was not made"
	[ ! -w "$2" ] || touch "$2"
	echo "$2"
}

make_now()
{
	local kind=$1 file=$2

	shift 2
	[ ! -e "$file" ] || return 0
	rm -rf "$file.tmp"
	if ! "$@" "$file.tmp" >&2; then
		rm -rf "$file.tmp"
		return 1
	fi
	mv "$file.tmp" "$file"
	unused "$file" "$SKUA_CACHE/$kind"-* | xargs -0r rm -rf
}

# with_lock NAME CMD...: one caller at a time; the others wait and then look again
with_lock()
{
	local name=$1 fd rc=0

	shift
	mkdir -p "$SKUA_CACHE"
	exec {fd}>"$SKUA_CACHE/.lock-$name"
	if ! flock -n "$fd"; then
		say "waiting for another $name to finish"
		flock "$fd"
	fi
	"$@" {fd}>&- || rc=$?
	exec {fd}>&-
	return $rc
}
