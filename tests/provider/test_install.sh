#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# tools/rdma-core/install: which directory it chooses, and that a library that processes have
# mapped is not written to. As TAP.
set -u
here=$(cd "$(dirname "$0")" && pwd -P)
install=${INSTALL:-$here/../../tools/rdma-core/install}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
n=0 failed=0

# elf CLASS MACHINE FILE TEXT: as much of an ELF file, little endian, as tells its kind
elf()
{
	mkdir -p "${3%/*}"
	printf "\\x7fELF\\x$1\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x03\\x00\\x$2\\x00%s" \
		"$4" >"$3"
}

# built CLASS MACHINE TEXT: the result of a build
built()
{
	rm -rf "$dir/out"
	elf "$1" "$2" "$dir/out/libskua.so.1.0.9" "$3"
	ln -s libskua.so.1.0.9 "$dir/out/libskua.so.1"
	ln -s libskua.so.1.0.9 "$dir/out/libskua-rdmav34.so"
	ln -s libskua.so.1 "$dir/out/libskua.so"
	echo "driver skua" >"$dir/out/skua.driver"
}

# a root with libibverbs: of 64 bits for x86-64 and arm64, and of 32 bits for x86
root()
{
	rm -rf "$dir/root"
	elf 01 03 "$dir/root/usr/lib/i386-linux-gnu/libibverbs.so.1" x
	elf 02 b7 "$dir/root/usr/lib/aarch64-linux-gnu/libibverbs.so.1" x
	elf 02 3e "$dir/root/usr/lib/x86_64-linux-gnu/libibverbs.so.1" x
}

t()
{
	local name=$1 log=$dir/log

	shift
	n=$((n + 1))
	if "$@" >"$log" 2>&1; then
		echo "ok $n - $name"
	else
		sed 's/^/# /' "$log"
		echo "not ok $n - $name"
		failed=1
	fi
}

# is_in LIB: all files are there, and nowhere else, and nothing is left beside them
is_in()
{
	local want

	want=$(printf '%s\n' ./etc/libibverbs.d/skua.driver ".$1/libibverbs/libskua-rdmav34.so" \
		".$1/libskua.so.1" ".$1/libskua.so.1.0.9" | sort)
	[ "$(cd "$dir/root" && find . -name '*skua*' | sort)" = "$want" ] ||
		{ find "$dir/root" -name '*skua*'; return 1; }
	cmp "$dir/out/libskua.so.1.0.9" "$dir/root$1/libibverbs/libskua-rdmav34.so" &&
		cmp "$dir/out/libskua.so.1.0.9" "$dir/root$1/libskua.so.1" &&
		cmp "$dir/out/skua.driver" "$dir/root/etc/libibverbs.d/skua.driver"
}

goes_to() { "$install" "$dir/root" "$dir/out" && is_in "$1"; }

refused()
{
	! "$install" "$dir/root" "$dir/out" && [ -z "$(find "$dir/root" -name '*skua*')" ]
}

# the library of the running kernel's machine, as the others
by_library()
{
	root
	built 02 b7 a
	goes_to /usr/lib/aarch64-linux-gnu || return
	root
	built 01 03 a
	goes_to /usr/lib/i386-linux-gnu || return
	root
	built 02 3e a
	goes_to /usr/lib/x86_64-linux-gnu
}

# One distribution has its 64 bits in lib64, another in lib
lib64()
{
	rm -rf "$dir/root"
	elf 02 3e "$dir/root/usr/lib64/libibverbs.so.1" x
	elf 01 03 "$dir/root/usr/lib/libibverbs.so.1" x
	built 02 3e a
	goes_to /usr/lib64 || return
	rm -rf "$dir/root"
	elf 02 3e "$dir/root/usr/lib64/libibverbs.so.1" x
	elf 01 03 "$dir/root/usr/lib/libibverbs.so.1" x
	built 01 03 a
	goes_to /usr/lib || return
	rm -rf "$dir/root"
	elf 02 3e "$dir/root/usr/lib/libibverbs.so.1" x
	built 02 3e a
	goes_to /usr/lib
}

none()
{
	root
	built 02 f3 a
	refused || return
	rm -rf "$dir/root"
	mkdir "$dir/root"
	built 02 3e a
	refused || return
	# Same word size and machine, other byte order
	rm -rf "$dir/root"
	elf 02 3e "$dir/root/usr/lib/libibverbs.so.1" x
	printf '\x02' | dd of="$dir/root/usr/lib/libibverbs.so.1" bs=1 seek=5 conv=notrunc status=none
	refused
}

no_elf()
{
	root
	built 02 3e a
	echo text >"$dir/out/libskua.so.1.0.9"
	refused
}

given()
{
	rm -rf "$dir/root"
	built 02 3e a
	LIBDIR=/opt/lib "$install" "$dir/root/" "$dir/out" && is_in /opt/lib
}

# A process that has the old files keeps them, and its memory is not written to
renamed()
{
	local lib=$dir/root/usr/lib/x86_64-linux-gnu conf=$dir/root/etc/libibverbs.d f old=()

	root
	built 02 3e old
	"$install" "$dir/root" "$dir/out" || return
	exec 8<"$lib/libskua.so.1.0.9" 9<"$conf/skua.driver"
	for f in "$lib/libskua.so.1.0.9" "$conf/skua.driver"; do
		old+=("$(stat -c %i "$f")")
	done
	built 02 3e "new and longer"
	"$install" "$dir/root" "$dir/out" && is_in /usr/lib/x86_64-linux-gnu || return
	[ "$(stat -c %i "$lib/libskua.so.1.0.9")" != "${old[0]}" ] &&
		[ "$(stat -c %i "$conf/skua.driver")" != "${old[1]}" ] &&
		[ "$(tail -c 3 <&8)" = old ] && [ "$(cat <&9)" = "driver skua" ]
}

nothing_built()
{
	root
	rm -rf "$dir/out"
	mkdir "$dir/out"
	refused
}

echo "TAP version 13"
echo "1..7"
t "the directory of a library of its kind" by_library
t "lib64 and lib" lib64
t "no such library" none
t "not an ELF file" no_elf
t "LIBDIR" given
t "renamed into place" renamed
t "nothing built" nothing_built
exit $failed
