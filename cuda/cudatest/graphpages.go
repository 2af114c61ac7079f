package cudatest

import "maps"

// graphGuide is where stream capture is explained, and what it prohibits.
const graphGuide = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#creating-a-graph-using-stream-capture"

func init() { maps.Copy(pages, graphPages) }

var graphPages = map[string]string{
	"capture: a graph is not launched in one":                driverAPI + "group__CUDA__TYPES.html",
	"capture: an event of one that is spoiled":               graphGuide,
	"capture: a batch that refuses it":                       Own,
	"capture: a command that is refused leaves it unspoiled": Own,
	"capture: a fork that is not joined":                     graphGuide,
	"capture: an event recorded outside is an event again":   graphGuide,
	"capture: asking after a captured event":                 graphGuide,
	"capture: begun twice, or ended without one":             driverAPI + "group__CUDA__STREAM.html",
	"capture: ended where it was not begun":                  driverAPI + "group__CUDA__TYPES.html",
	"capture: other streams go on":                           graphGuide,
	"capture: synchronising a captured stream":               graphGuide,
	"capture: synchronising the device":                      graphGuide,
	"capture: two do not become one":                         graphGuide,
	"capture: waiting for an event from outside":             graphGuide,
	"capture: work before it is no part of it":               graphGuide,
	"graph: arguments are taken when it is captured":         driverAPI + "group__CUDA__GRAPH.html",
	"graph: captured work runs when it is launched":          graphGuide,
	"graph: every mode captures":                             driverAPI + "group__CUDA__STREAM.html",
	"graph: handles end, launches go on":                     driverAPI + "group__CUDA__GRAPH.html",
	"graph: its end is that of every branch":                 graphGuide,
	"graph: keeps its place in the stream":                   driverAPI + "group__CUDA__GRAPH.html",
	"graph: launches of one run one after the other":         driverAPI + "group__CUDA__GRAPH.html",
	"graph: memory is read when it runs":                     driverAPI + "group__CUDA__GRAPH.html",
	"graph: nothing captured":                                driverAPI + "group__CUDA__GRAPH.html",
	"graph: several of one capture's graph":                  driverAPI + "group__CUDA__GRAPH.html",
	"graph: streams fork and join":                           graphGuide,
	"graph: unknown handles":                                 driverAPI + "group__CUDA__GRAPH.html",
}
