package nic

import (
	"context"
	"errors"
)

var errNoIPC = errors.New("package cuda does not share memory with other processes yet")

func (n *NIC) openIPC(context.Context) error { return errNoIPC }

func (s *server) serveIPC() (answer, error) { return answer{}, errNoIPC }

func (s *server) beginCopies([]run) (func() error, error) { return nil, errNoIPC }
