#!/usr/bin/env bash
# The PTX beside the kernels' sources.
#
#   scripts/ptx.sh make    make it anew from kernels/*.cu
#   scripts/ptx.sh check   fail where the committed PTX is not what the sources
#                          give, or where ptxas refuses it for a supported GPU
#
# The compilers are those of scripts/deps.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

archs="70 75 80 86 89 90 100 120"

compile() {
	local nvrtc
	nvrtc=$(scripts/deps.sh nvrtc)
	CGO_ENABLED=1 go run ./kernels/internal/mkptx -nvrtc "$nvrtc" -out "$1" kernels/*.cu
}

check() {
	local tmp ptxas fail=0 f arch
	ptxas=$(scripts/deps.sh ptxas)
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' RETURN
	compile "$tmp"
	for f in $( (cd kernels && ls ./*.ptx; cd "$tmp" && ls ./*.ptx) | sort -u); do
		f=${f#./}
		if ! cmp -s "$tmp/$f" "kernels/$f"; then
			echo "ptx: kernels/$f is not what kernels/${f%.ptx}.cu gives; run ./build.sh ptx" >&2
			diff -u "kernels/$f" "$tmp/$f" 2>&1 | head -n 20 >&2 || true
			fail=1
		fi
	done
	for f in kernels/*.ptx; do
		for arch in $archs; do
			if ! "$ptxas" -arch="sm_$arch" "$f" -o "$tmp/cubin"; then
				echo "ptx: ptxas refuses $f for sm_$arch" >&2
				fail=1
			fi
		done
	done
	[ "$fail" = 0 ] && echo "ptx: committed PTX is current; ptxas takes it for sm_${archs// /, sm_}"
	return "$fail"
}

case "${1:-}" in
make) compile kernels ;;
check) check ;;
*)
	echo "usage: $0 make|check" >&2
	exit 2
	;;
esac
