#!/usr/bin/env bash
# Fetches into .cache/, pinned by version and hash, the CUDA compilers (NVRTC
# 11.8 makes the PTX, ptxas 12.9 checks it, nvdisasm 13.5 shows what it made of
# it), NVIDIA's NIXL with UCX and its
# plugins, for the tests of nixl/libnixl, NVIDIA's Python client of the driver,
# for those of cuda/softcuda, and CUDA's headers, for gorgonia.org/cu. Does
# nothing, and needs no network, where they are there already.
#
#   scripts/deps.sh         fetch
#   scripts/deps.sh nvrtc   print the path of libnvrtc.so
#   scripts/deps.sh ptxas   print the path of ptxas
#   scripts/deps.sh nvdisasm
#                           print the path of nvdisasm
#   scripts/deps.sh nixl    print the path of libnixl_capi.so
#   scripts/deps.sh client  print the PYTHONPATH of cuda-bindings
#   scripts/deps.sh headers print the path of cuda.h
set -euo pipefail
cd "$(dirname "$0")/.."

nvrtc_version=11.8.89
nvcc_version=12.9.86
nvdisasm_version=13.5.37
bindings_version=13.0.3
pathfinder_version=1.9.1
pathfinder_hash=b743c132f90ad2d1e71d43fd28f31ebcde518f943e50fd44aca62b2a80d5230d
headers_version=12.9.79
nixl_version=1.5.1
case "$(uname -m)" in
x86_64)
	nvrtc_hash=a8d02f3cba345be56b1ffc3e74d8f61f02bb758dd31b0f20e12277a5a244f756
	nvcc_hash=5d6a0d32fdc7ea39917c20065614ae93add6f577d840233237ff08e9a38f58f0
	nvdisasm_hash=d3fdbdd49fa53e2e4aacd3db8259d052bd2b049ececdcb69e92e083c6728e7ca
	# For Python 3.10, 3.11, 3.12 and 3.13.
	bindings_hash="c5f797ce534a303525259be0ae7ee9cfcf4f7874b22f1f9b8e85555509dccb83
		9afede5937474864aa794eb57399dbdf5d2b05427aadcac275209b0857528a61
		cf41d9e69019939aa15296fa66ea7d3fdb8d2c6383f729f4b1156c8b37808a06
		512d0d803a5e47a8a42d5a34ce0932802bf72fe952fdb11ac798715a35c6e5cb"
	headers_hash=25bba2dfb01d48a9b59ca474a1ac43c6ebf7011f1b0b8cc44f54eb6ac48a96c3
	nixl_hash=341d0dfa499f941c054614252f1d8047d1380e33f29c87707372ff5ec7d3779a
	;;
aarch64)
	nvrtc_hash=8ab17ed51e7c4928f7170a0551e3e3b42f89d973bd267ced9688c238b3e10aef
	nvcc_hash=44e1eca4d08926193a558d2434b1bf83d57b4d5743e0c431c0c83d51da1df62b
	nvdisasm_hash=a3a8248074edb9fba63b74c38a5416b712a91ab09e70b8ab37186c3d293fc605
	# For Python 3.11.
	bindings_hash=dfd66c25a133365c4f93e3396c38c64b04400ccafd18c3a889ae251a1bfabaa1
	headers_hash=83469a846206f2a733db0c42e223589ab62fd2fabac4432d2f8802de4bded0a4
	nixl_hash=aced5529cc9781f8be1ee22e451c852630455460c1812b06cc863b05d797f2db
	;;
*)
	echo "deps: no CUDA compiler wheels for $(uname -m)" >&2
	exit 1
	;;
esac

# fetch NAME VERSION HASHES [OPTION...]: unpacks the wheel into
# .cache/NAME-VERSION; it has to have one of the hashes; the options are pip's.
fetch() {
	local name=$1 version=$2 dir=.cache/$1-$2 hashes tmp
	read -r -d '' -a hashes <<<"$3" || true
	shift 3
	[ -f "$dir/.complete" ] && return
	mkdir -p .cache
	tmp=$(mktemp -d .cache/fetch.XXXXXX)
	trap 'rm -rf "$tmp"' RETURN
	echo "$name==$version ${hashes[*]/#/--hash=sha256:}" >"$tmp/requirements.txt"
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
	found=$(find "$1/" -name "$2" -print -quit 2>/dev/null || true)
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
	fetch nvidia-cuda-nvdisasm "$nvdisasm_version" "$nvdisasm_hash"
	# Whatever Python there is: the libraries are the same in each wheel, and
	# one hash holds for all. Its own Python module needs Python 3.11.
	fetch nixl-cu12 "$nixl_version" "$nixl_hash" --implementation cp --python-version 3.11 --abi cp311 \
		--platform "manylinux_2_28_$(uname -m)"
	fetch cuda-bindings "$bindings_version" "$bindings_hash"
	fetch cuda-pathfinder "$pathfinder_version" "$pathfinder_hash"
	fetch nvidia-cuda-runtime-cu12 "$headers_version" "$headers_hash"
	;;
nvrtc) locate ".cache/nvidia-cuda-nvrtc-cu11-$nvrtc_version" 'libnvrtc.so.*' ;;
nvdisasm) locate ".cache/nvidia-cuda-nvdisasm-$nvdisasm_version" nvdisasm ;;
ptxas) locate ".cache/nvidia-cuda-nvcc-cu12-$nvcc_version" ptxas ;;
client)
	bindings=$(locate ".cache/cuda-bindings-$bindings_version" 'driver.cpython-*.so')
	pathfinder=$(locate ".cache/cuda-pathfinder-$pathfinder_version" pathfinder)
	echo "${bindings%/cuda/bindings/*}:${pathfinder%/cuda/*}"
	;;
headers) locate ".cache/nvidia-cuda-runtime-cu12-$headers_version" cuda.h ;;
nixl) locate ".cache/nixl-cu12-$nixl_version" libnixl_capi.so ;;
*)
	echo "usage: $0 [fetch|nvrtc|ptxas|nvdisasm|client|headers|nixl]" >&2
	exit 2
	;;
esac
