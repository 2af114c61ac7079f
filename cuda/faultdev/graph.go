package faultdev

import "github.com/kvgate/kvgate/cuda"

var _ cuda.Grapher = (*device)(nil)

// graphs asks about a method of [cuda.Grapher] and returns the device below as
// one, which it may not be.
func (f *device) graphs(name string) (cuda.Grapher, error) {
	if err := f.method(name); err != nil {
		return nil, err
	}
	if g, ok := f.d.(cuda.Grapher); ok {
		return g, nil
	}
	return nil, lacks(name)
}

func (f *device) BeginCapture(s cuda.Stream, mode cuda.CaptureMode) error {
	g, err := f.graphs("BeginCapture")
	if err != nil {
		return err
	}
	return g.BeginCapture(s, mode)
}

func (f *device) EndCapture(s cuda.Stream) (cuda.Graph, error) {
	g, err := f.graphs("EndCapture")
	if err != nil {
		return 0, err
	}
	return g.EndCapture(s)
}

func (f *device) CaptureStatus(s cuda.Stream) (cuda.CaptureStatus, error) {
	g, err := f.graphs("CaptureStatus")
	if err != nil {
		return 0, err
	}
	return g.CaptureStatus(s)
}

func (f *device) GraphSize(h cuda.Graph) (int, error) {
	g, err := f.graphs("GraphSize")
	if err != nil {
		return 0, err
	}
	return g.GraphSize(h)
}

func (f *device) Instantiate(h cuda.Graph) (cuda.GraphExec, error) {
	g, err := f.graphs("Instantiate")
	if err != nil {
		return 0, err
	}
	return g.Instantiate(h)
}

func (f *device) DestroyGraph(h cuda.Graph) error {
	g, err := f.graphs("DestroyGraph")
	if err != nil {
		return err
	}
	return g.DestroyGraph(h)
}

func (f *device) DestroyGraphExec(x cuda.GraphExec) error {
	g, err := f.graphs("DestroyGraphExec")
	if err != nil {
		return err
	}
	return g.DestroyGraphExec(x)
}
