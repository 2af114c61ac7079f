#!/usr/bin/env bash
# Fetches the CUDA compilers into .cache/, pinned by version and hash: NVRTC
# 11.8 makes the PTX, ptxas 12.9 checks it. Does nothing, and needs no network,
# where they are there already.
#
#   scripts/deps.sh         fetch
#   scripts/deps.sh nvrtc   print the path of libnvrtc.so
#   scripts/deps.sh ptxas   print the path of ptxas
set -euo pipefail
cd "$(dirname "$0")/.."

nvrtc_version=11.8.89
nvcc_version=12.9.86
case "$(uname -m)" in
x86_64)
	nvrtc_hash=a8d02f3cba345be56b1ffc3e74d8f61f02bb758dd31b0f20e12277a5a244f756
	nvcc_hash=5d6a0d32fdc7ea39917c20065614ae93add6f577d840233237ff08e9a38f58f0
	;;
aarch64)
	nvrtc_hash=8ab17ed51e7c4928f7170a0551e3e3b42f89d973bd267ced9688c238b3e10aef
	nvcc_hash=44e1eca4d08926193a558d2434b1bf83d57b4d5743e0c431c0c83d51da1df62b
	;;
*)
	echo "deps: no CUDA compiler wheels for $(uname -m)" >&2
	exit 1
	;;
esac

# fetch NAME VERSION HASH: unpacks the wheel into .cache/NAME-VERSION.
fetch() {
	local name=$1 version=$2 hash=$3 dir=.cache/$1-$2 tmp
	[ -f "$dir/.complete" ] && return
	mkdir -p .cache
	tmp=$(mktemp -d .cache/fetch.XXXXXX)
	trap 'rm -rf "$tmp"' RETURN
	echo "$name==$version --hash=sha256:$hash" >"$tmp/requirements.txt"
	python3 -m pip download --quiet --disable-pip-version-check --require-hashes --no-deps \
		--only-binary=:all: --dest "$tmp" --requirement "$tmp/requirements.txt" || {
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
	;;
nvrtc) locate ".cache/nvidia-cuda-nvrtc-cu11-$nvrtc_version" 'libnvrtc.so.*' ;;
ptxas) locate ".cache/nvidia-cuda-nvcc-cu12-$nvcc_version" ptxas ;;
*)
	echo "usage: $0 [fetch|nvrtc|ptxas]" >&2
	exit 2
	;;
esac
