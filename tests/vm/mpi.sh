# SPDX-License-Identifier: GPL-2.0
# Shared by the tests that run MPI between two network namespaces; sourced by bash.
# shellcheck shell=bash

# Each network namespace is a host with a name of its own, which mpirun and mpiexec reach by this in
# place of ssh
mpi_hosts()
{
	cat >"$TMP/agent" <<-'END'
	#!/bin/bash
	# agent [-x] HOST COMMAND...
	[ "$1" != -x ] || shift
	host=$1
	shift
	exec ip netns exec "$host" unshare --uts bash -c "hostname $host && $*"
	END
	chmod +x "$TMP/agent"
	printf '127.0.0.1 localhost\n%s %s\n%s %s\n' $IP4_1 $NS1 $IP4_2 $NS2 >/etc/hosts
}

# mpi_rank TRANSPORTS CMD...: $TMP/rank runs CMD. What a rank may use depends on where it is.
mpi_rank()
{
	cat >"$TMP/rank" <<-END
	#!/bin/bash
	case \$(hostname) in
	$NS1) export UCX_NET_DEVICES=$IB1:1 UCX_IB_GID_INDEX=$GID1 ;;
	$NS2) export UCX_NET_DEVICES=$IB2:1 UCX_IB_GID_INDEX=$GID2 ;;
	esac
	export UCX_TLS=$1,self UCX_LOG_LEVEL=warn UCX_WARN_UNUSED_ENV_VARS=n
	export OMPI_MCA_pml=ucx OMPI_MCA_pml_ucx_tls=any OMPI_MCA_pml_ucx_devices=any
	export OMPI_MCA_btl=self OMPI_MCA_osc=ucx OMPI_MCA_mpi_yield_when_idle=1
	export MPIR_CVAR_NOLOCAL=1
	exec ${*:2}
	END
	chmod +x "$TMP/rank"
}

# openmpi, mpich: four ranks, two a host; what they print is in $TMP/mpi.out
openmpi()
{
	timeout 240 "$TMP/agent" $NS1 mpirun.openmpi --allow-run-as-root \
		--prtemca plm_ssh_agent "$TMP/agent" --bind-to none --host $NS1:2,$NS2:2 -n 4 \
		"$TMP/rank" </dev/null >"$TMP/mpi.out" 2>&1
}

mpich()
{
	timeout 240 "$TMP/agent" $NS1 mpiexec.mpich -launcher ssh -launcher-exec "$TMP/agent" \
		-bind-to none -hosts $NS1:2,$NS2:2 -n 4 "$TMP/rank" </dev/null >"$TMP/mpi.out" 2>&1
}

# mpi LAUNCHER TRANSPORTS CMD...: CMD is run by four ranks, which say whether what they got is right
mpi()
{
	mpi_rank "${@:2}"
	"$1" || { echo "exit $?"; cat "$TMP/mpi.out"; return 1; }
	cat "$TMP/mpi.out"
	need "all ranks agree" grep -qE ': 4 ranks on 2 hosts, (.* )?0 (messages )?wrong$' "$TMP/mpi.out"
}
