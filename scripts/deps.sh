#!/usr/bin/env bash
# Fetches into .cache/, pinned by version and hash, the CUDA compilers (NVRTC
# 11.8 makes the PTX, ptxas 12.9 checks it) and NVIDIA's NIXL with UCX and its
# plugins, for the tests of nixl/libnixl. Does nothing, and needs no network,
# where they are there already.
#
#   scripts/deps.sh         fetch
#   scripts/deps.sh nvrtc   print the path of libnvrtc.so
#   scripts/deps.sh ptxas   print the path of ptxas
#   scripts/deps.sh nixl    print the path of libnixl_capi.so
set -euo pipefail
cd "$(dirname "$0")/.."

nvrtc_version=11.8.89
nvcc_version=12.9.86
nixl_version=1.5.1
case "$(uname -m)" in
x86_64)
	nvrtc_hash=a8d02f3cba345be56b1ffc3e74d8f61f02bb758dd31b0f20e12277a5a244f756
	nvcc_hash=5d6a0d32fdc7ea39917c20065614ae93add6f577d840233237ff08e9a38f58f0
	nixl_hash=341d0dfa499f941c054614252f1d8047d1380e33f29c87707372ff5ec7d3779a
	;;
aarch64)
	nvrtc_hash=8ab17ed51e7c4928f7170a0551e3e3b42f89d973bd267ced9688c238b3e10aef
	nvcc_hash=44e1eca4d08926193a558d2434b1bf83d57b4d5743e0c431c0c83d51da1df62b
	nixl_hash=aced5529cc9781f8be1ee22e451c852630455460c1812b06cc863b05d797f2db
	;;
*)
	echo "deps: no CUDA compiler wheels for $(uname -m)" >&2
	exit 1
	;;
esac

# fetch NAME VERSION HASH [OPTION...]: unpacks the wheel into
# .cache/NAME-VERSION; the options are pip's.
fetch() {
	local name=$1 version=$2 hash=$3 dir=.cache/$1-$2 tmp
	shift 3
	[ -f "$dir/.complete" ] && return
	mkdir -p .cache
	tmp=$(mktemp -d .cache/fetch.XXXXXX)
	trap 'rm -rf "$tmp"' RETURN
	echo "$name==$version --hash=sha256:$hash" >"$tmp/requirements.txt"
	python3 -m pip download --quiet --disable-pip-version-check --require-hashes --no-deps \
		--only-binary=:all: "$@" --dest "$tmp" --requirement "$tmp/requirements.txt" || {
		echo "deps: can not fetch $name $version" >&2
		return 1
	}
	mkdir "$tmp/wheel"
	python3 -m zipfile -e "$tmp"/*.whl "$tmp/wheel"
	find "$tmp/wheel" -path '*/bin/*' -type f -exec chmod +x {} +
	touch "$tmp/wheel/.complete"
	rm -rf "$dir"
	mv "$tmp/wheel" "$dir"
	echo "deps: $name $version in $dir"
}

# locate DIR FILE: prints the path of the one file of that name.
locate() {
	local found
	found=$(find "$1" -name "$2" -print -quit 2>/dev/null || true)
	if [ -z "$found" ]; then
		echo "deps: no $2 in $1; run ./build.sh deps" >&2
		return 1
	fi
	echo "$PWD/$found"
}

case "${1:-fetch}" in
fetch)
	fetch nvidia-cuda-nvrtc-cu11 "$nvrtc_version" "$nvrtc_hash"
	fetch nvidia-cuda-nvcc-cu12 "$nvcc_version" "$nvcc_hash"
	# Whatever Python there is: the libraries are the same in each wheel, and
	# one hash holds for all. Its own Python module needs Python 3.11.
	fetch nixl-cu12 "$nixl_version" "$nixl_hash" --implementation cp --python-version 3.11 --abi cp311 \
		--platform "manylinux_2_28_$(uname -m)"
	;;
nvrtc) locate ".cache/nvidia-cuda-nvrtc-cu11-$nvrtc_version" 'libnvrtc.so.*' ;;
ptxas) locate ".cache/nvidia-cuda-nvcc-cu12-$nvcc_version" ptxas ;;
nixl) locate ".cache/nixl-cu12-$nixl_version" libnixl_capi.so ;;
*)
	echo "usage: $0 [fetch|nvrtc|ptxas|nixl]" >&2
	exit 2
	;;
esac
