#!/bin/sh
# nvidia-smi for emulated GPUs: what planc asks it, of as many as PLANC_EMULATED_GPUS says, joined by NVLinks through switches.
set -eu
n=${PLANC_EMULATED_GPUS:-8}
table() { # what lies between each two of them
	i=0
	printf '\t'
	while [ $i -lt "$n" ]; do printf 'GPU%s\t' $i; i=$((i + 1)); done
	i=0
	while [ $i -lt "$n" ]; do
		printf '\nGPU%s' $i
		j=0
		while [ $j -lt "$n" ]; do
			if [ $i = $j ]; then printf '\t X '; else printf '\t%s' "$1"; fi
			j=$((j + 1))
		done
		i=$((i + 1))
	done
	echo
}
case "$*" in
--query-gpu=*)
	fields=${1#--query-gpu=}
	i=0
	while [ $i -lt "$n" ]; do
		row=
		for f in $(echo "$fields" | tr , ' '); do
			case $f in
			name) v='Emulated GPU' ;;
			pci.bus_id) v=$(printf '00000000:%02X:00.0' $((i + 1))) ;;
			compute_cap) v=9.0 ;;
			memory.total) v=81920 ;;
			memory.reserved) v=512 ;;
			power.limit) v=700.00 ;;
			pcie.link.gen.max) v=5 ;;
			pcie.link.width.max) v=16 ;;
			mig.mode.current) v=Disabled ;;
			driver_version) v=580.65.06 ;;
			*) printf 'Field "%s" is not a valid field to query.\n\n' "$f"; exit 2 ;;
			esac
			row="$row${row:+, }$v"
		done
		echo "$row"
		i=$((i + 1))
	done ;;
'topo -m') table NV18 ;;
'topo -p2p r') table OK ;;
'nvlink -s')
	i=0
	while [ $i -lt "$n" ]; do
		echo "GPU $i: Emulated GPU (UUID: GPU-0)"
		l=0
		while [ $l -lt 18 ]; do printf '\t Link %s: 26.562 GB/s\n' $l; l=$((l + 1)); done
		i=$((i + 1))
	done ;;
*) echo "nvidia-smi: nothing to say to $*" >&2; exit 1 ;;
esac
