//go:build cgo && linux

package softcuda

// Held returns how many handles and allocations programs have, of all devices.
func Held() (handles, allocations int) {
	machine.RLock()
	defer machine.RUnlock()
	for _, d := range machine.devices {
		if d != nil {
			d.memory.mu.RLock()
			allocations += len(d.memory.list)
			d.memory.mu.RUnlock()
		}
	}
	return len(machine.objects), allocations
}
