# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Cases of a test, for scripts on the host and in the Debian tree; in a VM tools/vm/guest/lib.sh has
# them.
failed=0

# t NAME CMD...: a case. What it said is shown if it fails, and failed is 1 from then on. AREA, if
# it is set, is what the name begins with. SKUA_ONLY, a pattern, picks cases that need no others.
t()
{
	local name=$1 log rc=0
	shift

	[ -z "${SKUA_ONLY-}" ] || [[ $name =~ $SKUA_ONLY ]] || return 0
	name=${AREA:+$AREA }$name
	log=$(mktemp)
	if "$@" >"$log" 2>&1; then
		echo "ok $name"
	else
		echo "not ok $name"
		tail -n 60 "$log" | sed 's/^/# /'
		rc=1
		failed=1
	fi
	rm -f "$log"
	return $rc
}
