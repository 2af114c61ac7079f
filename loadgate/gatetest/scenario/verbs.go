package scenario

var verbs []*verb

// init and not an initial value: the handlers of one family use Parse's kinds,
// and the order in the table is the order of the documentation.
func init() {
	for _, family := range [][]*verb{deviceVerbs, blockVerbs, stepVerbs, transferVerbs, faultVerbs, checkVerbs} {
		verbs = append(verbs, family...)
	}
}
