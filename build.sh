#!/usr/bin/env bash
# All passes of the build behind one entry point: ./build.sh PASS...
set -euo pipefail
cd "$(dirname "$0")"
root=$PWD

# The release of honnef.co/go/tools that the lint pass runs.
staticcheck_version=v0.8.2

passes="deps ptx ptx-check softcuda rehearse gpu-kit kit-rehearsal lint test race nixl fuzz libcuda-check cgocheck gorgonia gorgonia-bench nvml tune nixl-bench bench ci"

usage() {
	cat <<-END
		usage: ./build.sh PASS...
		  deps       fetch the pinned CUDA compilers and NIXL into .cache (a few wheels)
		  ptx        make the PTX beside the kernels' sources
		  ptx-check  fail where the committed PTX is stale or ptxas refuses it
		  softcuda   the simulator as .cache/softcuda/libcuda.so.1, for programs that
		             are not Go
		  rehearse   what is tested where there is a GPU, over that library: two Go
		             programs in one process, which Go does not promise to work
		  gpu-kit    a folder, .gpu-kit, that runs everything that needs a GPU on a
		             machine without Go, and reports: see bench/kit
		  kit-rehearsal
		             builds that kit and runs it over the simulator's libcuda.so.1,
		             also one that is slow, fails and hangs; the reports are left
		             in .cache/kit-rehearsal
		  lint       gofmt, go vet (amd64 and arm64; macOS, where the simulator
		             builds), staticcheck
		  test       all tests, without cgo
		  race       all tests but those of pass nixl, with cgo and the race detector
		  nixl       what starts, stops and kills processes over NIXL, the same way
		  fuzz       each fuzz target for a while; KVGATE_FUZZTIME is the seconds for
		             all of them (60)
		  libcuda-check
		             the symbols that are listed against those of NVIDIA's libcuda.so.1,
		             which is fetched from Debian where there is none
		  cgocheck   the packages that call C, with Go's checks of what is passed
		             to C, and with the address sanitizer
		  gorgonia   cuda/gorgonia and gorgonia.org/cu's own tests over the simulator
		  gorgonia-bench
		             a step through cuda/driver against one through gorgonia.org/cu
		  nvml       cuda/nvml over go-nvml's mock servers
		  tune       bench/tune over the simulator, with the pinned NVRTC
		  nixl-bench the C program that bench/nixl compares with
		  bench      all benchmarks; KVGATE_BENCHTIME is the time for each (1s)
		  ci         everything that has to pass, in the order of .ci/run
		KVGATE_REQUIRE=1 (or CI=true) makes a test fail, rather than skip, where
		the reference files beside the repository are missing. Tests that were
		skipped are listed at the end; in CI they fail a pass, but for the reasons
		in .ci/skips.
	END
}

# Each says what it runs, so that a failure can be run again by hand.
run() {
	echo "+ $*" >&2
	"$@"
}

# gotest is go test that says at the end which tests were skipped, and why. In CI
# a skip for a reason that .ci/skips does not list is a failure. What go test is
# run with in the environment comes first: NAME=VALUE... go test's arguments.
gotest() {
	local environment=()
	while [[ $1 =~ ^[A-Z0-9_]+= ]]; do
		environment+=("$1")
		shift
	done
	(cd "$root" && go build -o .cache/testrun ./internal/testrun)
	run env "${environment[@]}" "$root/.cache/testrun" -expected "$root/.ci/skips" "$@"
}

pass_deps() { run scripts/deps.sh; }
pass_ptx() { run scripts/ptx.sh make; }
pass_ptx-check() { run scripts/ptx.sh check; }

pass_softcuda() {
	run env CGO_ENABLED=1 go build -buildmode=c-shared -o .cache/softcuda/libcuda.so.1 ./cuda/softcuda/libcuda
}

pass_rehearse() {
	pass_softcuda
	run env LD_LIBRARY_PATH="$PWD/.cache/softcuda" KVGATE_SOFT_DEVICES=2 KVGATE_SOFT_SLOW=500 KVGATE_REQUIRE_GPU=1 \
		go test -count=1 -run OnGPU ./cuda/driver
	run env LD_LIBRARY_PATH="$PWD/.cache/softcuda" KVGATE_DRIVER=nvidia go test -count=1 ./kernels
}

pass_gpu-kit() { run scripts/gpu-kit.sh build; }

pass_kit-rehearsal() {
	pass_softcuda
	pass_gpu-kit
	run env KVGATE_KIT="$PWD/.gpu-kit" KVGATE_KIT_LIBCUDA="$PWD/.cache/softcuda" KVGATE_KIT_RESULTS="$PWD/.cache/kit-rehearsal" \
		go test -count=1 -run 'TestRehearsal' -timeout 9m ./bench/kit
}

pass_lint() {
	local unformatted arch
	# Files that git knows: what else lies about is nobody's business yet.
	unformatted=$(git ls-files -z '*.go' | xargs -0 gofmt -l)
	if [ -n "$unformatted" ]; then
		echo "lint: gofmt would change:" "$unformatted" >&2
		return 1
	fi
	run env GOARCH=amd64 CGO_ENABLED=0 go vet ./...
	run env GOARCH=arm64 CGO_ENABLED=0 go vet ./...
	for arch in amd64 arm64; do
		run env GOOS=darwin GOARCH=$arch CGO_ENABLED=0 go build ./...
		run env GOOS=darwin GOARCH=$arch CGO_ENABLED=0 go vet ./...
	done
	if command -v "${CC:-gcc}" >/dev/null; then
		run env CGO_ENABLED=1 go vet ./...
	else
		echo "lint: no C compiler: go vet with cgo left out" >&2
	fi
	run go run "honnef.co/go/tools/cmd/staticcheck@$staticcheck_version" ./...
}

# The time limits of tests are for what hangs: on a machine that is several times
# slower than a developer's no test may reach one.
pass_test() { gotest CGO_ENABLED=0 -timeout 20m ./...; }

needs_c() {
	if ! command -v "${CC:-gcc}" >/dev/null; then
		echo "$1: needs a C compiler (apt-get install gcc)" >&2
		return 1
	fi
}

# The packages whose tests start processes, over NIXL where there is NIXL.
nixl_packages="./nixl/libnixl/... ./nixl/exchange/... ./bench/live/... ./bench/nixl/..."

pass_race() {
	needs_c race
	local packages
	# shellcheck disable=SC2086 # several packages
	packages=$(comm -23 <(go list ./... | sort) <(go list $nixl_packages | sort))
	# shellcheck disable=SC2086
	gotest CGO_ENABLED=1 -race -timeout 30m $packages
}

pass_nixl() {
	needs_c nixl
	# shellcheck disable=SC2086 # several packages
	gotest CGO_ENABLED=1 -race -timeout 30m $nixl_packages
}

# The targets share the time, whatever their number. An input that fails is
# written below the target's testdata/fuzz.
pass_fuzz() {
	needs_c fuzz
	local line targets=() names=() seconds
	while read -r line; do
		case "$line" in
		Fuzz*) names+=("$line") ;;
		"ok "*)
			targets+=("${names[@]/#/"$(awk '{ print $2 }' <<<"$line") "}")
			names=()
			;;
		esac
	done < <(CGO_ENABLED=1 go test -list '^Fuzz' ./...)
	if [ ${#targets[@]} = 0 ]; then
		echo "fuzz: no target was found" >&2
		return 1
	fi
	seconds=$((${KVGATE_FUZZTIME:-60} / ${#targets[@]}))
	for line in "${targets[@]}"; do
		run env CGO_ENABLED=1 go test -run '^$' -fuzz "^${line#* }\$" -fuzztime "$((seconds > 0 ? seconds : 1))s" "${line% *}"
	done
}

# Without a GPU the library makes a device node all the same, if it may.
pass_libcuda-check() {
	needs_c libcuda-check
	local path before result=0
	path=$(scripts/libcuda.sh make) || true # the tests skip with what it says
	before=$(compgen -G '/dev/nvidia*' || true)
	gotest CGO_ENABLED=1 "KVGATE_LIBCUDA=$path" -count=1 -v -run RealLibcuda ./cuda/driver || result=1
	comm -13 <(sort <<<"$before") <(compgen -G '/dev/nvidia*' | sort) | xargs -r rm -f
	return $result
}

# The packages that call C.
cgo_packages="./internal/dl ./cuda/driver ./cuda/softcuda"

# The tests of nixl/libnixl that pass each kind of argument to NIXL, in the test's
# own process: all of them would take minutes. NIXL and UCX are not built with the
# sanitizer, which sees the binding's side only.
nixl_tests='^(TestParseMetadata.*|TestNothingInFlightIsLetGo|TestEqualRegionsGoDownOnce|TestTwoPostsOfADroppedRequest|TestNotificationOnlyAfterSuccess|TestErrorMapping)$'

pass_cgocheck() {
	# shellcheck disable=SC2086 # several packages
	gotest CGO_ENABLED=1 GODEBUG=cgocheck=1 -count=1 $cgo_packages
	gotest CGO_ENABLED=1 GODEBUG=cgocheck=1 -count=1 -run "$nixl_tests" ./nixl/libnixl
	# shellcheck disable=SC2086
	gotest CGO_ENABLED=1 GOEXPERIMENT=cgocheck2 -count=1 $cgo_packages
	gotest CGO_ENABLED=1 GOEXPERIMENT=cgocheck2 -count=1 -run "$nixl_tests" ./nixl/libnixl
	# Leaks: what a device keeps to the end of the process is no fault.
	# shellcheck disable=SC2086
	gotest CGO_ENABLED=1 ASAN_OPTIONS=detect_leaks=0 -asan -count=1 $cgo_packages
	gotest CGO_ENABLED=1 ASAN_OPTIONS=detect_leaks=0 -asan -count=1 -run "$nixl_tests" ./nixl/libnixl
}

pass_gorgonia() { run scripts/gorgonia.sh test; }
pass_gorgonia-bench() { run scripts/gorgonia.sh bench; }

# go-nvml calls functions that NVIDIA's header calls deprecated.
pass_nvml() {
	(
		cd cuda/nvml
		run env CGO_ENABLED=0 go vet ./...
		gotest CGO_ENABLED=0 -count=1 ./...
		run env CGO_ENABLED=1 CGO_CFLAGS="-O2 -g -Wno-deprecated-declarations" go vet ./...
		gotest CGO_ENABLED=1 CGO_CFLAGS="-O2 -g -Wno-deprecated-declarations" -race -count=1 ./...
	)
}

pass_tune() {
	(
		cd bench/tune
		run go vet ./...
		gotest CGO_ENABLED=0 -count=1 ./...
		gotest CGO_ENABLED=1 -race -count=1 ./...
	)
}

# bench/nixl starts it.
pass_nixl-bench() {
	mkdir -p .cache/nixl-bench
	run "${CC:-gcc}" -O2 -Wall -Werror -I nixl/libnixl -o .cache/nixl-bench/c bench/nixl/testdata/bench.c -ldl
}

pass_bench() {
	run go test -run '^$' -bench . -benchtime "${KVGATE_BENCHTIME:-1s}" -timeout 10m ./...
}

pass_ci() { run .ci/run; }

if [ $# = 0 ]; then
	usage >&2
	exit 2
fi
for p in "$@"; do
	case " $passes " in
	*" $p "*) ;;
	*)
		case "$p" in
		-h | --help | help)
			usage
			[ $# = 1 ] && exit 0
			echo "build.sh: $p goes alone: nothing of '$*' was run" >&2
			exit 2
			;;
		esac
		echo "build.sh: no pass '$p'; passes are: $passes" >&2
		exit 2
		;;
	esac
done
for p in "$@"; do
	"pass_$p"
done
