#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# devlink of a Skua device: information, parameters, health, reload. The device is reset.
. "$(dirname "$0")/lib.sh"

# param NAME: its value now
param()
{
	devlink -j dev param show "$dev" name "$1" |
		python3 -c 'import json, sys
for p in json.load(sys.stdin)["param"].popitem()[1]:
    print(p["values"][0]["value"])'
}

info()
{
	devlink dev info "$dev" | tee /dev/stderr | grep -q 'asic.rev'
}

turns()
{
	local was rc=0

	was=$(param sq_turn_wqes) || { echo "the device has no turns"; return $ksft_skip; }
	devlink dev param set "$dev" name sq_turn_wqes value 4 cmode runtime &&
		[ "$(param sq_turn_wqes)" = 4 ] || rc=1
	! devlink dev param set "$dev" name sq_turn_wqes value 0 cmode runtime || rc=1
	devlink dev param set "$dev" name sq_turn_wqes value "$was" cmode runtime || rc=1
	return $rc
}

healthy()
{
	devlink health show "$dev" reporter fw_fatal | grep -q 'state healthy'
}

diagnose()
{
	devlink health diagnose "$dev" reporter fw_fatal | tee /dev/stderr | grep -q 'state: up'
}

recoveries()
{
	devlink health show "$dev" reporter fw_fatal | sed -n 's/.* recover \([0-9]*\).*/\1/p'
}

recovered()
{
	[ "$(recoveries)" -gt "$1" ]
}

recovers()
{
	local before

	before=$(recoveries)
	devlink health test "$dev" reporter fw_fatal && wait_for 20 recovered "$before" &&
		wait_for 20 healthy && wait_for 20 carrier "$ns1" "$net1" && reached 20
}

reload()
{
	devlink dev reload "$dev" && wait_for 20 carrier "$ns1" "$net1" && reached 20
}

skua_setup
need devlink python3
dev=pci/$pci1
tap "information" info
tap "a parameter is set and refused" turns
tap "diagnosis" diagnose
tap "it recovers from a failure" recovers
tap "reload" reload
tap_end
