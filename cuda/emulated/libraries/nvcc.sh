#!/bin/sh
# nvcc for emulated GPUs: answers what planc asks of nvcc, and makes of FILE.cu a module that the emulated driver loads.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out= file=
while [ $# -gt 0 ]; do
	case $1 in
	--version) echo "Cuda compilation tools, release 13.5, V13.5.@VERSION@"; exit ;;
	--list-gpu-arch) printf 'compute_80\ncompute_90\ncompute_100\n'; exit ;;
	-o) out=$2; shift ;;
	-*) ;;
	*) file=$1 ;;
	esac
	shift
done
[ -n "$out" ] && [ -n "$file" ] || { echo "nvcc: nothing to do" >&2; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"@CXX@" @FLAGS@ -I"$here" -I. -E -P -include emulate.h -D__global__=__planc_kernel__ -x c++ "$file" | grep -o 'extern *"C" *__planc_kernel__ *void *[A-Za-z0-9_]*' | sed 's/.* //' >"$dir/names" || :
{
	echo '#include "module.h"'
	echo "#include \"$file\""
	echo 'extern "C" __attribute__((visibility("default"))) const emulate::Export planc_kernels[] = {'
	sed 's/.*/EXPORT(&),/' "$dir/names"
	echo '{nullptr, nullptr, nullptr, nullptr}};'
} >"$dir/module.cpp"
"@CXX@" @FLAGS@ -I"$here" -I. -shared -fPIC -fvisibility=hidden -o "$dir/module.so" "$dir/module.cpp"
size=$(wc -c <"$dir/module.so")
{
	printf 'planc emulated module\n\n\000'
	i=0
	while [ $i -lt 8 ]; do
		printf "\\$(printf %03o $((size % 256)))"
		size=$((size / 256))
		i=$((i + 1))
	done
	cat "$dir/module.so"
} >"$out"
