// Live runs a small engine through the gate on the device at hand, a GPU where
// there is one, once in each ordering mode, and says what each mode costs and
// what it breaks.
//
//	go run ./bench/live [-nic auto|nixl|ipc|copy] [-for d] [-rounds n] [-mode names] [-json|-bench]
//
// The engine decodes: steps over the blocks of a batch of requests, launched one
// ahead, with zeroing by package kernels, and prompts whose KV a transfer brings.
// A stand-in for the forward pass reads all bytes that its requests use, compares
// each with the stamp that belongs there, takes a set time, and then writes the
// new tokens' stamps. It is one kernel and PTX for all devices. KVGATE_DRIVER
// picks the device (cuda/auto); without a GPU it is the simulator, on the wall
// clock. Its figures are simulated ones, and say so.
//
// The prompts come from a NIC that knows nothing of the gate's streams. Which it
// was is printed:
//
//	nixl  NIXL over UCX, reading another process's memory: on a GPU device
//	      memory, through cuda_ipc; beside a simulated device host memory
//	ipc   another process, which has this one's memory through CUDA IPC and
//	      writes into it with a stream and a copy engine of its own
//	copy  a copy engine of this process, on a stream that the gate does not know
//
// Two simulated devices share bytes, and neither time nor bandwidth.
//
// auto takes the first of them that can be had, and says why it did not take
// those before. The others never fall back.
//
// The exit status is 0 when only modes that promise nothing lost blocks, and
// Ungated, where it ran, did; 1 when not, or when something failed; 2 when the
// command line is wrong.
//
// # JSON
//
// With -json one object goes to standard output, and nothing else:
//
//	{
//	  "device": {
//	    "name": "NVIDIA H200",
//	    "backend": "driver",        // or "sim"
//	    "driver": "13.0",           // CUDA version; "" where there is no driver
//	    "simulated": false,
//	    "slow": 1                   // of a simulated device: its model's times are stretched by it
//	  },
//	  "nic": {
//	    "asked": "auto",
//	    "kind": "ipc",              // nixl, ipc or copy
//	    "what": "...",              // the same in words
//	    "simulated": false,
//	    "skipped": [{"kind": "nixl", "why": "..."}]
//	  },
//	  "config": {
//	    "rounds": 3, "seconds": 10, // of each mode, all its rounds together
//	    "step_us": 5000, "requests": 32, "prompt_blocks": 16, "answer_tokens": 64,
//	    "blocks": 545, "block_tokens": 128, "segments": 8, "page_bytes": 262144, "seed": 1
//	  },
//	  "modes": [{
//	    "mode": "PerBlock", "gated": true, "simulated": false, "rounds": 3,
//	    "seconds": 9.4, "steps": 1860, "steps_per_s": 197.9, "tokens_per_s": 6300.1,
//	    "overhead_percent": 0.1,    // 100 (1 - steps/s over those of Ungated); null without Ungated
//	    "step_p50_ms": 5.05, "step_p99_ms": 5.4,
//	    "host_blocked_ms": 0,       // the host's waits that the mode asks for, in all
//	    "loads": 990, "held_loads": 985, "hold_p50_ms": 5.1, "hold_p99_ms": 9.9,
//	    "load_p50_ms": 0.9, "load_p99_ms": 1.4, // from when the gate let a load go until it had come
//	    "requests": 990, "corrupted_requests": 0, "blocks": 16830, "corrupted_blocks": 0,
//	    "submits_per_step": 1.3, "polls_per_step": 24.2, // crossings into the driver
//	    "zeroed_bytes": 1, "loaded_bytes": 1,
//	    "round_steps_per_s": [197.7, 198.1, 197.9]
//	  }],
//	  "failure": ""                 // why the exit status is 1
//	}
//
// Steps, tokens, host-blocked time and crossings are of the time in which the
// batch was full (from when it first was, or from the middle of a round that did
// not come to it); "seconds" is how long that was. All else is of whole rounds.
// Rounds of the modes take turns. Times are of the wall clock; beside a simulated
// device they are its model's.
package main
