package loadgate

// PlanForTest books a step of a gate's requests without the device.
func (g *Gate) PlanForTest(step uint64, uses ...Use) (over func(launched bool), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, err := g.gather(uses); err != nil {
		return nil, err
	}
	g.owned.requests.note(step, uses)
	var us []stepUse
	for _, u := range uses {
		us = append(us, stepUse{u.Request.slot, u.Request.gen, u.Tokens})
	}
	return func(launched bool) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.stepOver(step, us, launched)
	}, nil
}
